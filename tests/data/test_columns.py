"""Columns as people have them: several answers in a cell, sets of columns, written numbers, scales, dates."""

import datetime as dt
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

import unless
from data.tables import write
from unless.data.columns.texts import (
    FORMATS,
    find_choices,
    find_numerals,
    find_order,
    formats_of,
    limit_of,
    parse_moment,
    parse_number,
    snapped,
)
from unless.errors import DataError, FileFormatError, SettingError, UnknownName

N = 240
RNG = np.random.default_rng(7)
SEX = (["f", "m", "m", "f", "m"] * N)[:N]


def ticks(separator=";", seed=3, n=N, none=""):
    rng = np.random.default_rng(seed)
    cells = []
    for _ in range(n):
        chosen = [one for one, p in (("Excel", 0.6), ("Python", 0.5), ("R", 0.3)) if rng.random() < p]
        cells.append(separator.join(chosen) or none)
    return cells


def sources(columns, tmp_path):
    """Give the same table as a file, a frame of pandas, one of polars, and a dictionary."""
    frame = pd.DataFrame(columns)
    frame.to_csv(tmp_path / "t.csv", index=False)
    return [tmp_path / "t.csv", frame, pl.DataFrame(columns), columns]


@pytest.mark.parametrize("separator", [";", "; ", "|", ", "])
def test_several_answers_in_a_cell_become_columns(separator, tmp_path):
    cells = ticks(separator, none="Other")
    table = {"tools": cells, "sex": SEX}
    for source in sources(table, tmp_path):
        data = unless.read(source)
        assert data.names == ("tools: Excel", "tools: Other", "tools: Python", "tools: R", "sex")
        assert data.domain["tools: R"].levels == ("no", "yes")
        place = data.domain.index("tools: R")
        n_yes = int(data.counts[data.rows[:, place] == 1].sum())
        assert n_yes == sum("R" in cell.split(separator) for cell in cells)
    assert "multiple choice, split into 4 columns" in data.plan["tools"].done


def test_an_empty_cell_ticks_none_unless_there_is_an_answer_for_that():
    data = unless.read({"tools": [cell or None for cell in ticks()], "sex": SEX})
    assert data.n_rows == N
    assert "an empty cell ticks none" in data.plan["tools"].done
    alone = unless.prepare({"tools": ticks(none="None of them"), "sex": SEX})["tools"]
    assert alone.choices == ("Excel", "Python", "R")
    assert "'None of them' means that no other is ticked" in alone.why
    holes = [None if i % 12 == 0 else cell for i, cell in enumerate(ticks(none="None"))]
    line = unless.prepare({"tools": holes, "sex": SEX})["tools"]
    assert not line.missing
    kept = unless.read({"tools": [cell or None for cell in ticks()], "sex": SEX}, missing="drop")
    assert kept.n_rows < N


def test_rare_answers_are_left_out_and_named():
    cells = [f"{cell};my own {i}" if i % 50 == 0 else cell for i, cell in enumerate(ticks(none="Other"))]
    line = unless.prepare({"tools": cells, "sex": SEX})["tools"]
    assert line.choices == ("Excel", "Other", "Python", "R")
    assert "left out, as hardly anybody or nearly everybody ticked it: 'my own 0'" in line.why


@pytest.mark.parametrize(
    "cells",
    [
        [f"Smith{i}, John" for i in range(N)],
        ["male, urban", "female, urban", "male, rural", "female, rural", "male, coast", "female, coast"] * 40,
        ["Yes, always", "Yes, sometimes", "No, never"] * 80,
        ["Paris, France", "Lyon, France", "Rome, Italy"] * 80,
        [f"I think, that is {i}, all" for i in range(N)],
        ["a", "b", "c"] * 80,
        ["1,234", "5,678", "9,012"] * 80,
    ],
    ids=["names", "crossed", "answers", "places", "texts", "plain", "numbers"],
)
def test_commas_alone_make_no_multiple_choice(cells):
    line = unless.prepare({"x": cells, "sex": SEX, "b": list("pqr") * 80})["x"]
    assert line.role != "choices"


def test_choices_are_asked_for_or_refused():
    pairs = ["a/b", "a", "b", "a"] * 60
    with pytest.raises(DataError, match="'x' holds no cells with several answers"):
        unless.read({"x": pairs, "sex": SEX}, roles={"x": "choices"})
    two = {"x": ["a;b", "a", "b", "a"] * 60, "sex": SEX}
    assert unless.read(two, roles={"x": "category"}).domain["x"].levels == ("a", "a;b", "b")
    assert unless.read(two, roles={"x": "choices"}).names == ("x: a", "x: b", "sex")


def test_many_combinations_are_choices_too(tmp_path):
    rng = np.random.default_rng(5)
    options = [f"option {i}" for i in range(16)]
    cells = [";".join(one for one in options if rng.random() < 0.4) for _ in range(3000)]
    table = {"x": cells, "b": rng.choice(["p", "q"], 3000).tolist()}
    assert len(set(cells)) > 1000
    plans = [unless.prepare(source)["x"] for source in sources(table, tmp_path)]
    assert plans[0].choices == tuple(sorted(options))
    assert all(one == plans[0] for one in plans)


def test_a_model_of_choices_reads_the_next_table(tmp_path):
    table = {"tools": ticks(none="Other"), "sex": SEX, "c": list("xyz") * 80}
    est = unless.learn(table)
    net = est.network(table)
    assert np.isfinite(net.score(table))
    new = {"tools": ["R;Excel", "Other"], "sex": ["f", "m"], "c": ["x", "y"]}
    frame = pd.DataFrame(new)
    frame.to_csv(tmp_path / "n.csv", index=False)
    assert net.score(new) == net.score(frame) == net.score(tmp_path / "n.csv")


def one_hot(values, yes=1, no=0):
    levels = sorted(set(values))
    return {f"color_{level}": [yes if one == level else no for one in values] for level in levels}


COLORS = RNG.choice(["red", "blue", "light_green"], N).tolist()


@pytest.mark.parametrize(("yes", "no"), [(1, 0), ("yes", "no"), (True, False), ("Y", "N"), (1.0, 0.0)])
def test_a_set_of_which_one_is_set_is_joined(yes, no, tmp_path):
    table = {**one_hot(COLORS, yes, no), "sex": SEX}
    for source in sources(table, tmp_path):
        data = unless.read(source)
        assert data.names == ("color", "sex")
        assert data.domain["color"].levels == ("blue", "light_green", "red")
        place = data.domain.index("color")
        counts = [int(data.counts[data.rows[:, place] == code].sum()) for code in range(3)]
        assert counts == [COLORS.count(level) for level in ("blue", "light_green", "red")]
    assert data.plan["color_red"].done == "joined into color"
    assert "joined from color_blue, color_light_green, color_red" in data.plan["color"].done


def test_joining_is_changed():
    table = {**one_hot(COLORS), "sex": SEX}
    apart = unless.read(table, roles={"color_red": "category"})
    assert "color_red" in apart.names
    assert unless.read(table, columns=["color_red", "color_blue", "sex"]).names == (
        "color_red",
        "color_blue",
        "sex",
    )
    named = unless.read(table, join={"paint": ["color_red", "color_blue", "color_light_green"]})
    assert named.domain["paint"].levels == ("color_red", "color_blue", "color_light_green")
    two = unless.read(table, join={"color": ["color_red", "color_blue"]}, exclude=["color_light_green"])
    assert two.domain["color"].levels == ("red", "blue", "none")
    some = unless.read(
        table, join={"color": ["color_red", "color_blue"]}, columns=["sex", "color_red", "color_blue"]
    )
    assert some.names == ("sex", "color")
    with pytest.raises(SettingError, match="fewer than two"):
        unless.read(table, join={"color": ["color_red"]})
    with pytest.raises(UnknownName, match="join= names 'color_rod'"):
        unless.read(table, join={"color": ["color_rod", "color_blue"]})
    with pytest.raises(DataError, match=r"'sex' of join=.* does not hold yes and no"):
        unless.read(table, join={"color": ["color_red", "sex"]})
    both = {
        **table,
        "color_blue": [1] * 3 + table["color_blue"][3:],
        "color_red": [1, *table["color_red"][1:]],
    }
    with pytest.raises(DataError, match=r"cannot be joined into 'color', as row 1 ticks more than one"):
        unless.read(both, join={"color": ["color_red", "color_blue"]})


def test_a_model_of_a_joined_set_reads_the_next_table():
    table = {**one_hot(COLORS), "sex": SEX, "c": list("xyz") * 80}
    net = unless.learn(table).network(table)
    assert np.isfinite(net.score(table))
    joined = {"color": COLORS, "sex": SEX, "c": list("xyz") * 80}
    assert net.score(joined) == net.score(table)


@pytest.mark.parametrize(
    ("texts", "written", "numbers"),
    [
        (["$1,999.01", "$5", "-$5.10", "($7.50)"], "$1,234.5", [1999.01, 5, -5.1, -7.5]),
        (["1.234,56 €", "5,00 €", "-7,5 €"], "1.234,5 €", [1234.56, 5, -7.5]),
        (["25%", "3.5%", "100 %"], "1,234.5%", [25, 3.5, 100]),
        (["1,234", "12,345", "7"], "1,234.5", [1234, 12345, 7]),
        (["1,5", "2,75", "12,345"], "1.234,5", [1.5, 2.75, 12.345]),
        (["0,123", "0,456"], "1.234,5", [0.123, 0.456]),
        (["1'234.50", "12'000.00"], "1,234.5", [1234.5, 12000]),
        (["1 234,50", "12 000,00"], "1.234,5", [1234.5, 12000]),
        (["12 kg", "3.5 kg", "1kg"], "1,234.5 kg", [12, 3.5, 1]),
        (["1 day", "2 days", "30 days"], "1,234.5 days", [1, 2, 30]),
        (["CHF 12.50", "CHF 1'000.00"], "CHF1,234.5", [12.5, 1000]),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_numbers_are_read_as_people_write_them(texts, written, numbers):
    found = find_numerals(dict.fromkeys(texts, 1))
    assert found.written == written
    assert [parse_number(text, written) for text in texts] == numbers


@pytest.mark.parametrize("texts", [["K-0001", "K-0002"], ["18-24", "25-34"], ["5 kg", "5 lb"], ["a", "b"]])
def test_what_is_no_number_is_none(texts):
    assert find_numerals(dict.fromkeys(texts, 1)) is None


def test_files_and_frames_read_the_same_written_numbers(tmp_path):
    price = [f"${1_000 + 37.5 * i:,.2f}" for i in range(N)]
    crp = ["<5" if i % 3 == 0 else f"{5 + i / 10:.1f}" for i in range(N)]
    note = ["refused" if i % 60 == 7 else str(i % 90) for i in range(N)]
    many = [f"{i * 13 % 9973 / 7:.3f} kg".replace(".", ",") for i in range(N * 10)]
    table = {"price": price, "crp": crp, "note": note, "sex": SEX}
    tables = [unless.read(source) for source in sources(table, tmp_path)]
    assert all(one == tables[0] and one.notes == tables[0].notes for one in tables)
    plan = tables[0].plan
    assert plan["price"].written == "$1,234.5"
    assert plan["crp"].description == "number, cut at 5, 15, 20 (numbers beyond a limit: '<5')"
    assert plan["note"].why == "4 cells are no number and missing: 'refused' (4)"
    assert tables[0].domain["crp"].levels[0] == "under 5"
    assert "4 of 240 rows lack 'note' (4)" in plan.missing
    wide = {"w": many, "sex": SEX * 10}
    lines = [unless.prepare(source)["w"] for source in sources(wide, tmp_path)]
    assert lines[0].written == "1.234,5 kg"
    assert all(one == lines[0] for one in lines)


def test_a_plan_of_written_numbers_reads_the_next_table(tmp_path):
    price = [f"${1_000 + 37.5 * i:,.2f}" for i in range(N)]
    table = {"price": price, "sex": SEX, "b": list("pqr") * 80}
    data = unless.read(table)
    data.plan.save(tmp_path / "p.json")
    assert unless.read(table, plan=tmp_path / "p.json") == data
    few = {"price": ["$5", "$1,000,000.00", "$2,000"], "sex": ["f", "m", "f"], "b": ["p", "q", "r"]}
    again = unless.read(few, plan=tmp_path / "p.json")
    assert again.domain["price"] == data.domain["price"]
    net = unless.learn(table).network(table)
    plain = {**few, "price": [5, 1_000_000, 2000]}
    assert net.score(few) == net.score(plain)
    assert unless.read(table, bins={"price": 2}).domain["price"].cuts == (5500.0,)
    assert unless.read(table, roles={"price": "number"}).plan["price"].role == "number"


def test_cuts_beside_a_limit_are_the_limit():
    below, above = parse_number("<5", "1,234.5"), parse_number(">60", "1,234.5")
    assert below < 5
    assert above > 60
    assert limit_of("<5", "1,234.5") == (5, False)
    assert snapped([below, np.nextafter(below, 9), 40.0], [(5.0, False)]) == (5.0, 40.0)
    assert snapped([above], [(60.0, True)]) == (np.nextafter(60.0, np.inf),)


@pytest.mark.parametrize(
    "levels",
    [
        ["Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"],
        ["1 - Never", "2 - Rarely", "3 - Sometimes", "4 - Often", "5 - Always"],
        ["Poor", "Fair", "Good", "Very good", "Excellent"],
        ["Not at all important", "Slightly important", "Very important", "Extremely important"],
        ["low", "medium", "high"],
        ["S", "M", "L", "XL"],
        ["Freshman", "Sophomore", "Junior", "Senior"],
        ["High school", "Some college", "Bachelor's degree", "Master's degree", "PhD"],
        ["Under 18", "18-24", "25-64", "65+"],
        ["<$10k", "$10k-$20k", "$20k-$50k", "$50k+"],
        ["Less than $10,000", "$10,000 to $19,999", "$20,000 or more"],
        ["None", "1 to 5", "6 to 10", "More than 10"],
        ["<1 year", "1-3 years", "4-9 years", "10+ years"],
        ["5%", "10%", "25%", "100%"],
        ["F", "D", "C-", "C", "C+", "B", "A-", "A"],
        ["1st", "2nd", "3rd"],
    ],
    ids=lambda levels: levels[0],
)
def test_scales_that_everyone_knows_are_ordered(levels):
    column = [levels[i % len(levels)] for i in range(N)]
    data = unless.read({"x": column, "sex": SEX})
    assert data.domain["x"].levels == tuple(levels)
    assert data.domain["x"].ordered
    assert data.plan["x"].role == "ordered"
    assert not unless.read({"x": column, "sex": SEX}, roles={"x": "category"}).domain["x"].ordered
    assert unless.read({"x": column, "sex": SEX}, plan=data.plan) == data


@pytest.mark.parametrize(
    "labels",
    [["red", "green", "blue"], ["A", "B", "C", "D"], ["1-0", "2-3", "0-0"], ["yes", "no", "maybe"],
     ["North 1", "South 2", "East 3"], ["S", "M", "D"], ["01", "02", "10"], ["10-20", "15-25", "20-30"]],
)  # fmt: skip
def test_other_labels_have_no_order(labels):
    order = find_order("x", labels)
    assert order is None or not order.is_scale or labels == ["01", "02", "10"]
    data = unless.read({"x": [labels[i % len(labels)] for i in range(N)], "sex": SEX})
    assert not data.domain["x"].ordered


def test_days_and_months_are_in_the_order_of_the_calendar():
    days = ["Wednesday", "Monday", "Friday"] * 80
    data = unless.read({"x": days, "sex": SEX})
    assert data.domain["x"].levels == ("Monday", "Wednesday", "Friday")
    assert not data.domain["x"].ordered


def test_answers_beside_a_scale_are_missing_if_they_are_few(tmp_path):
    scale = ["never", "sometimes", "often"]
    few = ["don't know" if i % 48 == 0 else scale[i % 3] for i in range(N)]
    for source in sources({"x": few, "sex": SEX}, tmp_path):
        data = unless.read(source)
        assert (data.domain["x"].levels, data.n_rows) == (("never", "sometimes", "often"), N - 5)
        assert '"don\'t know" read as missing' in data.plan["x"].done
        assert "5 of 240 rows lack 'x' (5)" in data.plan.missing
        assert unless.read(source, plan=data.plan) == data
    many = ["don't know" if i % 4 == 0 else scale[i % 3] for i in range(N)]
    variable = unless.read({"x": many, "sex": SEX}).domain["x"]
    assert (variable.levels, variable.ordered) == (("never", "sometimes", "often", "don't know"), False)


def days(n, step=1, start="2019-01-01"):
    return [dt.date.fromisoformat(start) + dt.timedelta(days=i * step) for i in range(n)]


@pytest.mark.parametrize(
    ("dates", "parts"),
    [
        (days(N, 5), ["year", "month"]),
        (days(N, 2), ["quarter"]),
        (days(N), ["month", "weekday"]),
    ],
    ids=["years", "quarters", "months"],
)
def test_dates_become_periods_and_parts(dates, parts):
    table = {"day": [one.isoformat() for one in dates], "sex": SEX}
    data = unless.read(table)
    assert [one.part for one in data.plan["day"].parts] == parts
    assert data.domain[f"day ({parts[0]})"].ordered
    assert unless.read(table, plan=data.plan) == data
    if parts == ["quarter"]:
        assert data.domain["day (quarter)"].levels == (
            "2019 Q1", "2019 Q2", "2019 Q3", "2019 Q4", "2020 Q1", "2020 Q2",
        )  # fmt: skip


def test_months_of_less_than_a_year_follow_each_other():
    table = {"day": [one.isoformat() for one in days(N, start="2019-10-15")], "sex": SEX}
    variable = unless.read(table).domain["day (month)"]
    assert variable.levels[:4] == ("October", "November", "December", "January")
    assert variable.ordered


def test_parts_are_asked_for():
    table = {"day": [one.isoformat() for one in days(N)], "sex": SEX}
    asked = unless.read(table, roles={"day": "quarter+weekday"})
    assert asked.names == ("day (quarter)", "day (weekday)", "sex")
    with pytest.raises(SettingError, match="'quarter\\+decade' is no role"):
        unless.read(table, roles={"day": "quarter+decade"})
    with pytest.raises(DataError, match="'sex' holds no dates"):
        unless.read(table, roles={"sex": "quarter"})


@pytest.mark.parametrize(
    "written",
    ["%m/%d/%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%Y-%m-%dT%H:%M:%S+01:00", "%Y/%m/%d %I:%M:%S %p GMT+1",
     "%d %b %Y %H:%M", "%Y-%m-%d %H:%M:%S"],
)  # fmt: skip
def test_moments_are_read_as_people_write_them(written, tmp_path):
    moments = [dt.datetime(2023, 3, 25) + dt.timedelta(hours=5 * i, minutes=i) for i in range(N)]
    table = {"when": [one.strftime(written) for one in moments], "sex": SEX}
    for source in sources(table, tmp_path):
        data = unless.read(source)
        assert [one.part for one in data.plan["when"].parts] == ["month", "weekday", "hour"]
        assert data.domain["when (hour)"].levels == ("under 6", "6 to 11", "12 to 17", "18 or more")
        place = data.domain.index("when (hour)")
        n_night = int(data.counts[data.rows[:, place] == 0].sum())
        assert n_night == sum(one.hour < 6 for one in moments)


def test_times_of_day_and_dates_of_two_meanings():
    clock = [f"{i * 7 % 24:02d}:{i % 60:02d}" for i in range(N)]
    assert unless.read({"at": clock, "sex": SEX}).names == ("at (hour)", "sex")
    first = [one.strftime("%m/%d/%Y") for one in days(12, 32)] * 20
    both = unless.prepare({"day": first[:N], "sex": SEX})["day"]
    assert both.written == "%m/%d/%Y"
    ambiguous = [f"{1 + i % 12:02d}/{1 + i % 11:02d}/20{10 + i % 5}" for i in range(N)]
    line = unless.prepare({"day": ambiguous, "sex": SEX})["day"]
    assert line.why == "the month is taken to come before the day; the role 'day first' says otherwise"
    other = unless.prepare({"day": ambiguous, "sex": SEX}, roles={"day": "day first"})["day"]
    assert (line.written, other.written) == ("%m/%d/%Y", "%d/%m/%Y")
    assert formats_of(["2009-10", "2010-11", "2011-12"]) == []
    assert formats_of(["2009-10", "2010-12"]) == ["%Y-%m"]


@pytest.mark.parametrize("space", [" ", "\u00a0\t"])
def test_every_way_of_writing_dates_is_tried_that_a_text_fits(space):
    moment = dt.datetime(2013, 5, 27, 14, 45, 30)
    for written in FORMATS:
        text = moment.strftime(written or "%Y-%m-%d %H:%M").replace(" ", space)
        for one in (text, text.lower(), text.replace("27", "7") + " GMT+1", text[1:], text + "x"):
            fitting = [other for other in FORMATS if parse_moment(one, other) is not None]
            assert formats_of([one]) == fitting


def test_layout_around_labels_is_no_part_of_them(tmp_path):
    cells = ["\ta;b ", " b", "a ; b", "a", "b;\ta", "c"] * 40
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x,y", *(f'"{cell}",{i % 2}' for i, cell in enumerate(cells))]))
    data = unless.read(path)
    assert data.names == ("x: a", "x: b", "x: c", "y")
    assert int(data.counts[data.rows[:, 0] == 1].sum()) == 160
    cities = ["\tc0 "] * 100 + [f"c{i}" for i in range(40)] * 3
    path.write_text("\n".join(["x,y", *(f'"{city}",{i % 2}' for i, city in enumerate(cities))]))
    data = unless.read(path)
    assert data.domain["x"].levels == ("c0", "other")
    assert int(data.counts[data.rows[:, 0] == 0].sum()) == 103


def test_merged_levels_are_those_of_the_plan(tmp_path):
    cities = [f"c{int(i)}" for i in np.minimum(RNG.pareto(1.0, 2000) * 3, 300)]
    table = {"city": cities, "sex": (SEX * 10)[:2000]}
    for source in sources(table, tmp_path):
        data = unless.read(source)
        plan = unless.Plan.from_dict(json.loads(json.dumps(data.plan.to_dict())))
        assert unless.read(source, plan=plan) == data
    few = {"city": ["c0", "c299", "never seen"], "sex": ["f", "m", "f"]}
    again = unless.read(few, plan=data.plan)
    assert again.domain["city"] == data.domain["city"]
    assert again.domain["city"].levels[-1] == "other"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ({"role": "choices", "choices": ["x"], "separator": "]"}, "no known separator"),
        ({"role": "category", "columns": ["x", "y"], "levels": ["x"]}, "are not its columns"),
        ({"role": "choices", "choices": "x"}, "a list is missing"),
    ],
)
def test_spoiled_lines_of_a_plan_are_refused(line, sentence):
    document = {"format": "unless-plan", "version": 1, "columns": [{"name": "a", **line}], "notes": []}
    with pytest.raises(FileFormatError, match=sentence):
        unless.Plan.from_dict(document)


def test_a_plan_of_everything_is_kept(tmp_path):
    table = {
        "tools": [cell or None for cell in ticks()],
        **one_hot(COLORS),
        "price": [f"{i * 3:,} €" for i in range(N)],
        "grade": ["low", "medium", "high"] * 80,
        "day": [one.isoformat() for one in days(N, 2)],
    }
    for source in sources(table, tmp_path):
        data = unless.read(source)
        data.plan.save(tmp_path / "plan.json")
        kept = unless.Plan.load(tmp_path / "plan.json")
        assert kept == data.plan
        assert unless.read(source, plan=kept) == data
        assert unless.read(source, levels=data.domain, columns=data.names).domain == data.domain


def test_choices_need_a_varying_number_of_answers():
    assert find_choices({"a;b": 50, "b;c": 50, "a;c": 50}) is None
    assert find_choices({"a;b": 50, "b": 50, "a": 50, "a;c": 50, "c": 9}).chosen == ("a", "b", "c")


def test_survey_files_say_what_is_asked(tmp_path):
    lines = ["Timestamp,Which pets?,Price"]
    rng = np.random.default_rng(2)
    for i in range(N):
        when = dt.datetime(2023, 3, 1) + dt.timedelta(minutes=97 * i)
        pets = ", ".join(one for one in ("Cat", "Dog", "Fish") if rng.random() < 0.5)
        lines.append(f'{when:%m/%d/%Y %H:%M:%S},"{pets}","${1_000 + 7 * i:,}.50"')
    plan = unless.prepare(write(tmp_path / "t.csv", "\n".join(lines)))
    assert [one.role for one in plan.lines] == ["date", "choices", "number"]
