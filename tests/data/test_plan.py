"""Any table, first try: a small twin of each trouble, and what holds for every plan."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unless
from data.tables import levels_of, write
from unless.data.columns.numbers import Numbers, find_cuts, group_labels, group_sizes, n_groups
from unless.data.prepare import MissingPatterns, decide_policy
from unless.data.read import read_beside
from unless.errors import DataError, FileFormatError, SettingError, UnknownLevel, UnknownName

N = 200
MERGED = " (rare values are merged)"
SEX = ["f", "m", "m", "f", "m"] * 40
RNG = np.random.default_rng(1)
AGES = RNG.integers(18, 90, N).tolist()


def told(columns, name="x", **settings):
    return unless.prepare(
        {"x": columns, "sex": SEX, "b": list("pqrs") * 50, **settings.pop("more", {})}, **settings
    )[name].description


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ([f"name {i}" for i in range(N)], "identifier, left out (a different value in each row)"),
        (list(range(7, N + 7)), "identifier, left out (a different value in each row)"),
        ([f"a long text of five words {i}" for i in range(N)], "text, left out (free text)"),
        (["z"] * N, "constant, left out (every row has 'z')"),
        ([None] * N, "empty, left out (no row has a value)"),
        ([[1, 2]] * N, "nested, left out (its cells hold lists, records or bytes)"),
        ([0, 1] * 100, "category, 2 levels"),
        ([1, 2, 3, 4, 5] * 40, "ordered, 5 levels"),
        (["01234", "20000", "31000", "00001"] * 50, "category, 4 levels"),
        ([0] * 120 + [1] * 60 + [2] * 14 + [3, 3, 4, 4, 6, 7], f"ordered, 3 levels: 0, 1, 2 or more{MERGED}"),
        ([0] * 150 + list(range(2, 27)) * 2, "number, cut at 1"),
        (list(range(1930, 1980)) * 4, "number, cut at 1940, 1955, 1970"),
        (list(range(1930, 5930, 20)), "number, cut at 3,000, 4,000, 5,000"),
        ([0.0] * 120 + [i / 10 for i in range(1, 81)], "number, cut at above 0, 5"),
        (["x"] * 100 + [None] * 100, "category, 1 levels, missing is a level"),
    ],
    ids=lambda value: None if isinstance(value, list) else value[:24],
)  # fmt: skip
def test_each_trouble_has_its_line(column, sentence):
    assert told(column) == sentence


def test_names_say_more():
    ids = [i // 2 * 10 for i in range(N)]
    assert told(ids, "patient_id", more={"patient_id": ids}) == (
        "identifier, left out (100 identifiers that come again)"
    )
    plan = unless.prepare({"patient_id": ids, "sex": SEX, "b": list("pqrs") * 50})
    assert plan.notes == (
        "Rows with the same 'patient_id' may not be independent, and are taken to be; name the column with "
        "cluster_column= if they are not.",
    )
    weights = (RNG.random(N) + 0.5).tolist()
    assert told(SEX, "survey_weight", more={"survey_weight": weights}).startswith("weights the rows")
    assert told(SEX, "wt", more={"wt": weights}).startswith("weights the rows")
    assert told(SEX, "wt", more={"wt": (np.array(weights) * 70).tolist()}).startswith("number, cut at")


def counted():
    return {
        "hair": [hair for hair in "abcd" for _ in range(8)],
        "eye": [eye for eye in "wxyz" * 4 for _ in range(2)],
        "sex": ["f", "m"] * 16,
        "Freq": list(range(3, 35)),
    }


def test_a_column_of_counts_is_found():
    data = unless.read(counted())
    assert data.plan["Freq"].done == "counts the rows"
    assert (data.n_rows, data.names) == (sum(range(3, 35)), ("hair", "eye", "sex"))
    # Rows that come twice are no table of counts.
    twice = {name: column * 2 for name, column in counted().items()}
    assert unless.prepare(twice).count_column is None
    assert unless.prepare({**twice, "Freq": [2, 3] * 32})["Freq"].done == "category, 2 levels"
    assert unless.prepare(counted(), roles={"Freq": "category"}).count_column is None


def test_copies_and_functions_are_kept_apart():
    weight = RNG.integers(700, 5000, N)
    table = {
        "low": np.where(weight < 2500, "yes", "no").tolist(),
        "weight": weight.tolist(),
        "log": np.log(weight).tolist(),
        "fallen": (-weight).tolist(),
        "rounded": (weight // 100).tolist(),
        "other": RNG.integers(0, 1000, N).tolist(),
    }
    plan = unless.prepare(table)
    assert plan["low"].done == "category, 2 levels, a function of weight"
    assert plan["low"].why == "yes where weight is under 2,500, no from 2,500"
    assert 2500 in plan["weight"].cuts
    assert plan["log"].done == "copy of weight, left out"
    assert plan["fallen"].done == "copy of weight, left out"
    assert plan["rounded"].done == "function of weight, left out"
    assert plan["other"].role == "number"
    data = unless.read(table)
    assert data.names == ("low", "weight", "other")
    said = unless.GGS().fit(data).statements_.about("low", "weight")
    assert (said.kind, said.source) == ("determined", "weight")


def test_dates_become_parts_that_come_again(tmp_path):
    days = pd.date_range("2019-01-01", periods=N * 4, freq="D")
    frame = pd.DataFrame({"day": days, "a": list("xy") * (N * 2), "b": list("pqrs") * N})
    plan = unless.prepare(frame)
    assert plan["day"].done == "date, kept as year, month, weekday"
    assert any("sequence of time" in note for note in plan.notes)
    data = unless.read(frame)
    assert data.names == ("day (year)", "day (month)", "day (weekday)", "a", "b")
    assert data.domain["day (weekday)"].levels[:2] == ("Monday", "Tuesday")
    for written, form in (("%Y-%m-%d", ""), ("%d.%m.%Y", "%d.%m.%Y"), ("%m/%d/%Y", "%m/%d/%Y")):
        text = frame.assign(day=days.strftime(written))
        text.to_csv(tmp_path / "t.csv", index=False)
        assert unless.prepare(tmp_path / "t.csv")["day"].written == form
        assert unless.read(tmp_path / "t.csv") == data == unless.read(text)
    again = pl.from_pandas(frame)
    assert unless.read(again) == data
    # A second table is read with the parts of a first.
    assert unless.read(frame.head(100), levels=data.domain, columns=data.names).n_rows == 100


def test_many_levels_are_merged_or_left_out():
    cities = [f"c{int(i)}" for i in np.minimum(RNG.pareto(1.0, 2000) * 3, 300)]
    plan = unless.prepare({"city": cities, "sex": SEX * 10})
    assert plan["city"].rare >= 10
    assert len(unless.read({"city": cities, "sex": SEX * 10}).domain["city"].levels) <= 61
    # Many levels that are all seen often enough stay as they are.
    often = [f"c{i % 40}" for i in range(4000)]
    assert unless.prepare({"city": often, "sex": SEX * 20})["city"].is_plain
    seldom = [f"c{i % 150}" for i in range(1000)]
    line = unless.prepare({"city": seldom, "sex": SEX * 5, "b": SEX * 5})["city"]
    assert (line.role, line.why) == ("text", "150 levels, nearly all of them seldom")


def holes(patterns):
    return MissingPatterns({frozenset(names.split()): n for names, n in patterns.items()})


def test_few_rows_with_holes_are_left_out():
    policy = decide_policy(["a", "b"], holes({"": 96, "a": 3, "b": 1}))
    assert (policy.levels, policy.n_dropped) == ((), 4)


def test_a_column_gets_a_level_only_where_too_few_rows_would_remain():
    policy = decide_policy(["a", "b"], holes({"": 70, "a": 25, "b": 5}))
    assert (policy.levels, policy.n_dropped, policy.dropped_for) == ((), 30, (("a", 25), ("b", 5)))
    policy = decide_policy(["a", "b"], holes({"": 10, "a": 85, "b": 5}))
    assert (policy.levels, policy.n_dropped, policy.dropped_for) == (("a",), 5, (("b", 5),))


def test_columns_missing_together_get_a_level_only_where_too_few_rows_would_remain():
    policy = decide_policy(["a", "b"], holes({"": 70, "a b": 28, "a": 2}))
    assert (policy.levels, policy.n_dropped) == ((), 30)
    policy = decide_policy(["a", "b"], holes({"": 35, "a b": 60, "a": 5}))
    assert (policy.levels, policy.n_dropped) == (("a", "b"), 0)


def test_rows_are_left_out_only_while_half_remain():
    policy = decide_policy(["a", "b", "c", "d"], holes({"": 40, "a": 18, "b": 16, "c": 14, "d": 12}))
    assert (policy.levels, policy.n_dropped) == (("a",), 42)


@pytest.mark.parametrize("by", ["sex", "age"])
def test_a_question_that_is_not_asked_of_everyone_keeps_a_level(by):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"sex": rng.choice(["f", "m"], 500, p=[0.7, 0.3]), "age": rng.integers(0, 90, 500)})
    births = rng.choice(["none", "one", "more"], 500).astype(object)
    births[table["sex"] == "m" if by == "sex" else table["age"] < 30] = None
    data = unless.read(table.assign(births=births))
    assert data.plan["births"].missing
    assert data.n_rows == 500
    # As many that are missing at random are no level.
    data = unless.read(table.assign(births=rng.permutation(births)))
    assert not data.plan["births"].missing
    assert data.n_rows == (births != None).sum()  # noqa: E711


def test_few_rows_tell_nothing_of_who_was_asked():
    table = {"a": ["x", "y"] * 100, "b": ["p", "q", "q", "p"] * 50, "c": ["u", "v"] * 95 + ["w"] * 10}
    table["b"][40:90] = [None] * 50
    table["b"][-9:] = [None] * 9
    table["b"][-10] = "p"
    assert not unless.prepare(table)["b"].missing
    table["b"][-10] = None
    assert unless.prepare(table)["b"].missing


def test_what_was_done_with_missing_values_is_said():
    table = {
        "a": ["x", "y"] * 99 + [None, "x"],
        "b": ["pqr"[i % 3] if i % 10 == 0 else None for i in range(N)],
    }
    data = unless.read(table)
    assert data.plan.missing == (
        "1 of 200 rows lacks 'a' (1): learners leave it out, tests and networks use what it has; missing "
        "values of 'b' (180) are a level, which tests do not take for a value."
    )
    assert data.plan.missing in data.notes
    assert levels_of(data)["b"] == ("p", "q", "r", "missing")
    assert data.n_rows == 199


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(st.integers(-50, 50), st.sampled_from([0.0, 0.5, 2.25, 1e6, -1e-3])),
        min_size=30,
        max_size=300,
    ),
    st.integers(1, 8),
)
def test_cuts_give_filled_groups_with_names_of_their_own(values, repeat):
    found, counts = np.unique(np.array(values, dtype=float), return_counts=True)
    numbers = Numbers(found, (counts * repeat).astype(float), bool((found == np.floor(found)).all()))
    cuts = find_cuts(numbers)
    assert all(a < b for a, b in pairwise(cuts))
    if cuts:
        assert group_sizes(numbers, cuts).min() >= 10
        labels = group_labels(cuts, numbers.whole, float(found[0]), float(found[-1]))
        assert len(set(labels)) == len(cuts) + 1
    assert len(cuts) < n_groups(numbers.total) + 3


@pytest.mark.parametrize(
    ("cuts", "whole", "span", "labels"),
    [
        ((30, 45), True, (18, 90), ("under 30", "30 to 44", "45 or more")),
        ((1, 3), True, (0, 3), ("0", "1 to 2", "3")),
        ((1.5, 2.5), False, (0.1, 9), ("under 1.5", "1.5 to under 2.5", "2.5 or more")),
        ((5e-324, 2.5), False, (0, 9), ("0", "over 0 to under 2.5", "2.5 or more")),
        ((40, np.nextafter(40.0, np.inf)), False, (1.5, 80), ("under 40", "40", "over 40")),
    ],
)
def test_groups_are_named_as_people_do(cuts, whole, span, labels):
    assert group_labels(cuts, whole, *span) == labels


def mixed():
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "id": np.arange(300),
            "größe, 'x'": rng.normal(0, 10, 300).round(1),
            "Ω\n": rng.choice(["é", "日本", 'q"r'], 300),
            "age": rng.integers(18, 80, 300),
            "hole": np.where(rng.random(300) < 0.3, None, rng.choice(["u", "v"], 300)),
            "day": pd.date_range("2018-03-01", periods=300, freq="5D"),
        }
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_changes_nothing(seed, tmp_path):
    frame, shuffled = mixed(), mixed().sample(frac=1, random_state=seed)
    assert unless.prepare(frame) == unless.prepare(shuffled)
    assert unless.read(frame) == unless.read(shuffled)
    frame.to_csv(tmp_path / "1.csv", index=False)
    shuffled.to_csv(tmp_path / "2.csv", index=False)
    assert unless.prepare(tmp_path / "1.csv") == unless.prepare(tmp_path / "2.csv")
    assert unless.read(tmp_path / "1.csv").notes == unless.read(tmp_path / "2.csv").notes


def test_files_and_frames_give_the_same_table(tmp_path):
    frame = mixed()
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    data = unless.read(frame)
    for source in (
        tmp_path / "t.csv",
        tmp_path / "t.parquet",
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
    ):
        assert unless.read(source) == data


def test_types_of_frames():
    n = 120
    numbers = [i % 40 for i in range(n)]
    grades = pd.Categorical(["low", "mid", "high"] * 40, categories=["low", "mid", "high"], ordered=True)
    frame = pd.DataFrame(
        {
            "grade": grades,
            "flag": [True, False] * 60,
            "nullable": pd.array([None if i % 60 == 0 else i % 3 for i in range(n)], dtype="Int64"),
            "maybe": pd.array([None if i % 60 == 0 else i % 2 == 0 for i in range(n)], dtype="boolean"),
            "span": pd.to_timedelta([i % 4 for i in range(n)], unit="D"),
            "text": pd.array([str(i % 5) for i in range(n)], dtype="string"),
            "float": np.array(numbers, dtype=np.float32),
            "mixed": pd.Series([1, "a", 2.5] * 40, dtype=object),
        }
    )
    data = unless.read(frame)
    assert data.domain["grade"].ordered
    assert data.domain["grade"].levels == ("low", "mid", "high")
    assert data.plan["grade"].role == "ordered"
    assert data.plan["float"].role == "number"
    assert data.plan["mixed"].levels == ("1", "2.5", "a")
    assert data.n_rows == 118
    assert set(data.names) == set(frame.columns)
    wide = pl.DataFrame(
        {"a": pl.Series(["x", "y"] * 60, dtype=pl.Categorical), "n": numbers, "none": [None] * n}
    )
    assert [line.role for line in unless.read(wide.select("a", "n")).plan.lines] == ["category", "number"]
    arrow = pa.table({"a": pa.array(["x", "y"] * 60).dictionary_encode(), "n": numbers, "l": [[1]] * n})
    assert unless.read(arrow).names == ("a", "n")


def test_lines_are_changed_by_arguments():
    table = {"x": AGES, "sex": SEX, "b": list("pqrs") * 50, "id": [f"i{i}" for i in range(N)]}
    assert unless.read(table, roles={"x": "category"}, max_levels=256).domain["x"].levels[0] == str(min(AGES))
    assert unless.read(table, bins={"x": 2}).plan["x"].cuts == ()
    assert len(unless.read(table, bins={"x": 2}).domain["x"].cuts) == 1
    assert unless.read(table, exclude=["b"]).names == ("x", "sex")
    assert unless.read(table, columns=["sex", "x"]).names == ("sex", "x")
    ordered = unless.read(table, ordered={"b": ["s", "r", "q", "p"]}).domain["b"]
    assert (ordered.levels, ordered.ordered) == (("s", "r", "q", "p"), True)
    assert unless.read(table, ordered=["b"]).domain["b"].ordered
    assert unless.read(table, roles={"id": "excluded", "b": "text"}).names == ("x", "sex")
    with pytest.raises(DataError, match="'sex' holds text and is no number"):
        unless.read(table, roles={"sex": "number"})
    with pytest.raises(
        SettingError, match="'nonsense' is no role that roles= can give to column 'x'; choose one of category"
    ):
        unless.read(table, roles={"x": "nonsense"})
    with pytest.raises(UnknownName, match="exclude= names 'B'"):
        unless.read(table, exclude=["B"])
    with pytest.raises(DataError, match=r"as only 'sex' is left .* 'id' \(identifier\)"):
        unless.read({"id": table["id"], "sex": SEX})


def test_strict_refuses_all_problems_in_one_message():
    table = {
        "x": list(range(300)) * 2,
        "y": [f"u{i}" for i in range(600)],
        "sex": [*SEX, *SEX, *SEX[:-1], None],
    }
    with pytest.raises(
        DataError, match=r"for 3 reasons. Column 'x' .* Column 'y' .* missing values in 'sex' \(1\)"
    ):
        unless.read(table, strict=True)


def test_plain_tables_are_read_as_before():
    table = {"a": ["x", "y"] * 30, "n": [1, 2, 3] * 20, "b": [True, False, True] * 20}
    data, strict = unless.read(table), unless.read(table, strict=True)
    assert data == strict
    assert data.notes == strict.notes == ()
    assert [one.kind for one in data.domain] == [one.kind for one in strict.domain]
    assert data.plan.is_plain
    assert strict.plan is None


def test_a_plan_is_kept_and_followed_again(tmp_path):
    frame = mixed()
    data = unless.read(frame)
    data.plan.save(tmp_path / "plan.json")
    kept = unless.Plan.load(tmp_path / "plan.json")
    assert kept == data.plan == unless.Plan.from_dict(json.loads((tmp_path / "plan.json").read_text()))
    older = (tmp_path / "plan.json").read_text().replace('"included"', '"kept"')
    assert unless.Plan.from_dict(json.loads(older)) == kept
    assert unless.read(frame, plan=kept) == data
    assert unless.read(frame, plan=tmp_path / "plan.json").plan == kept
    part = unless.read(frame.head(60), plan=kept)
    assert [one.levels for one in part.domain] == [one.levels for one in data.domain][: len(part.domain)]
    with pytest.raises(DataError, match="no column 'age', which the plan needs"):
        unless.read(frame.drop(columns="age"), plan=kept)
    with pytest.raises(UnknownLevel, match="'w' in column 'hole'"):
        unless.read(frame.assign(hole="w"), plan=kept)
    assert "age" in str(kept)
    assert "<table>" in kept._repr_html_()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": "other"}, "is no plan; its format"),
        ({"version": 2}, "is of version 2"),
        ({"columns": 3}, "a list is missing"),
        ({"columns": [{"name": "a", "role": "boss"}]}, "unknown role 'boss'"),
        ({"columns": [{"name": "a", "role": "number", "cuts": [2, 1]}]}, "cuts of 'a'"),
        ({"columns": [{"name": "a", "role": "number", "cuts": ["1"]}]}, "a cut is none"),
        ({"columns": [{"name": "a", "role": "text", "evil": 1}]}, "unknown key"),
        ({"columns": [{"name": "a", "role": "text"}] * 2}, "named twice"),
    ],
)
def test_a_spoiled_plan_is_refused_in_one_sentence(change, sentence, tmp_path):
    document = {"format": "unless-plan", "version": 1, "columns": [], "notes": [], **change}
    with pytest.raises(FileFormatError, match=sentence):
        unless.Plan.from_dict(document)
    path = write(tmp_path / "p.json", json.dumps(document))
    with pytest.raises(FileFormatError, match=sentence) as caught:
        unless.Plan.load(path)
    assert "\n" not in str(caught.value)


def test_what_is_no_json_is_no_plan(tmp_path):
    with pytest.raises(FileFormatError, match="is no plan, as it is no JSON"):
        unless.Plan.load(write(tmp_path / "p.json", "[" * 100_000))
    with pytest.raises(DataError, match="cannot be opened"):
        unless.Plan.load(tmp_path / "none.json")


def test_a_model_of_cut_numbers_is_asked_with_numbers(tmp_path):
    age = RNG.integers(18, 90, 400)
    frame = pd.DataFrame(
        {"age": age, "old": np.where(age + RNG.normal(0, 8, 400) > 50, "yes", "no"), "b": list("pq") * 200}
    )
    est = unless.learn(frame)
    unless.save(est, tmp_path / "m.unless")
    domain = unless.load(tmp_path / "m.unless").data_.domain
    assert domain["age"].cuts == est.data_.domain["age"].cuts != ()
    net = est.network(frame)
    assert net.query("old", {"age": 20})["yes"] < 0.2
    assert net.query("old", {"age": 200})["yes"] > 0.8
    assert net.predict(pd.DataFrame({"age": [19.5, 88], "b": ["p", "q"]}), "old").tolist() == ["no", "yes"]
    assert np.isfinite(net.score(frame.head(50)))
    # Names of groups are read as well as numbers.
    label = domain["age"].levels[0]
    rows = pd.DataFrame({"age": [label, "88"], "old": ["no", "yes"], "b": ["p", "q"]})
    assert unless.read(rows, levels=domain, columns=domain.names).n_rows == 2


def test_two_tables_are_compared_by_the_same_groups():
    def table(seed):
        rng = np.random.default_rng(seed)
        age = rng.integers(18 + seed, 90, 500)
        return {"age": age.tolist(), "old": (age > 50).tolist(), "b": rng.choice(["p", "q"], 500).tolist()}

    first = unless.read(table(1))
    assert unless.read(table(30)).domain["age"] != first.domain["age"]
    assert read_beside(table(30), first.domain).domain["age"] == first.domain["age"]
    for tables in ((table(1), table(30)), (first, table(30)), (table(30), first)):
        assert unless.compare_tables(*tables).sides[0][1] == 500


@pytest.mark.parametrize("hole", ["NA", "N/A", "?", " ", "NULL"])
@pytest.mark.parametrize("rows", [1, 30])
def test_words_for_missing_in_a_column_of_numbers(tmp_path, hole, rows):
    path = tmp_path / "t.csv"
    path.write_text("q,a\n" + f"1,x\n2,y\n{hole},x\n3.5,y\n" * rows)
    # Three numbers may be codes of kinds.
    assert unless.prepare(path)["q"].role == "category"
    data = unless.read(path)
    assert f" lack{'s' if rows == 1 else ''} 'q' ({rows}): learners leave " in data.plan.missing
    assert data.domain["q"].levels[:3] == ("1", "2", "3.5")


@pytest.mark.parametrize("write", ["${:,.2f}", "{:,.2f} €", "({:.1f})", "{:.1f}%", "£{:.0f}"])
def test_numbers_with_signs_are_no_identifiers(write):
    values = [write.format(1_000 + 37 * i) for i in range(300)]
    plan = unless.prepare({"price": values, "a": ["x", "y", "z"] * 100, "b": ["u", "v"] * 150})
    assert plan["price"].role == "number"
    assert "read as numbers written like" in plan["price"].description
    mixed = [f"{1_000 + 37 * i} {'kg' if i % 2 else 'lb'}" for i in range(300)]
    plan = unless.prepare({"price": mixed, "a": ["x", "y", "z"] * 100, "b": ["u", "v"] * 150})
    assert plan["price"].role != "number"
    codes = [f"K-{i:04d}" for i in range(300)]
    assert (
        unless.prepare({"k": codes, "a": ["x", "y"] * 150, "b": ["u", "v"] * 150})["k"].role == "identifier"
    )


def test_codes_that_may_stand_for_no_answer_are_named():
    rng = np.random.default_rng(8)
    scale, low, age = rng.integers(1, 6, 300), rng.integers(1, 8, 300), rng.integers(18, 80, 300)
    scale[:15], low[:15], age[:15] = 99, -9, 999
    table = {"q": scale.tolist(), "r": low.tolist(), "age": age.tolist(), "s": (age % 10).tolist()}
    (note,) = unless.prepare(table).notes
    assert note == (
        "99 in 'q', -9 in 'r', 999 in 'age' may stand for no answer; if so, name all that stands for missing "
        "with missing_values=."
    )
    assert unless.prepare(table)["q"].levels[-1] == "99"
    assert unless.prepare(table, missing_values=["99", "-9", "999"]).notes == ()
    assert "'q'" not in str(unless.prepare(table, roles={"q": "category"}).notes)


@pytest.mark.parametrize("answer", ["Prefer not to say", "Don't know", "No answer", "Refuse to answer"])
def test_a_scale_keeps_its_order_beside_some_who_do_not_answer(answer):
    places = ["never", "sometimes", "often", "always"] * 50
    few = unless.prepare({"x": [answer] * 5 + places[5:], "sex": SEX})
    assert (few["x"].role, few["x"].no_answers, few.notes) == ("ordered", (answer,), ())
    many = unless.prepare({"x": [answer] * 40 + places[40:], "sex": SEX})
    assert many["x"].role == "category"
    (note,) = many.notes
    assert note == (
        f"'x' has no order with {answer!r} as a level; if it is to be missing, name all that stands for "
        "missing with missing_values=."
    )
    again = unless.prepare({"x": [answer] * 40 + places[40:], "sex": SEX}, missing_values=[answer])
    assert (again["x"].role, again.notes) == ("ordered", ())
