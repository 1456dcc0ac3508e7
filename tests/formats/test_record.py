import io
import math
import os
import stat
import subprocess
import sys
import zipfile

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structures.models import canonical_models, domains, feature_lists, graphs, steady
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.errors import FileFormatError, SettingError
from unless.formats.record import Record, load_record, save_record
from unless.structures.canonical import CanonicalModel
from unless.structures.graph import Condition, Feature, FeatureSet, Graph

DOMAIN = Domain(
    (
        Variable("Dept", ("A", "B", "C"), "category"),
        Variable("é \"'\n", ("", "2"), "integer"),
        Variable("Admit", ("no", "yes")),
    )
)
SETTINGS = {
    "alpha": 0.05,
    "max_blanket": None,
    "n": 3,
    "shared": True,
    "order": ["Dept", "Admit"],
    "required_edges": [("Dept", "Admit")],
    "test": "pearson",
}


def small_model():
    rows = np.array([[0, 0, 0], [0, 1, 1], [2, 1, 0]], dtype=np.uint16)
    return CanonicalModel.from_edges(DOMAIN, rows, np.array([5, 1, 7]), np.array([[5], [0], [5]], np.uint8))


def small_features():
    features = [
        Feature([Condition("Dept", "A", equal=False), Condition("Admit", "no")]),
        Feature([Condition("Admit", "yes")]),
    ]
    return FeatureSet(DOMAIN, features)


def small_table():
    return Dataset.from_codes(DOMAIN, [[0, 0, 0], [0, 1, 1], [2, 1, 0]], [5, 1, 7])


STRUCTURES = {
    "canonical model": small_model(),
    "graph": Graph(DOMAIN, [("Dept", "Admit")]),
    "feature set": small_features(),
}


@pytest.fixture(params=[*STRUCTURES, "graph with table"])
def record(request):
    name, _, table = request.param.partition(" with ")
    results = {"n_tests": 12, "seconds": 1.5}
    return Record(STRUCTURES[name], "CSGS", SETTINGS, results, small_table() if table else None)


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def change(path, **changes):
    """Rewrite fields of model.json, by dotted names spelled with two underscores."""
    members = members_of(path)
    text = msgspec.json.decode(members["model.json"])
    for dotted, value in changes.items():
        *way, last = dotted.split("__")
        place = text
        for step in way:
            place = place[step]
        place[last] = value
    write_members(path, {**members, "model.json": msgspec.json.encode(text)})


def change_array(path, name, edit):
    members = members_of(path)
    array = np.load(io.BytesIO(members[name]))
    edited = edit(array.copy())
    buffer = io.BytesIO()
    np.save(buffer, array if edited is None else edited)
    write_members(path, {**members, name: buffer.getvalue()})


def test_a_record_comes_back_as_it_was(record, tmp_path):
    save_record(record, tmp_path / "m.unless")
    loaded = load_record(str(tmp_path / "m.unless"))
    assert loaded == record
    assert loaded.domain == record.domain
    assert [v.kind for v in loaded.domain] == ["category", "integer", "text"]
    assert {name: type(value) for name, value in loaded.settings.items()} == {
        name: type(value) for name, value in SETTINGS.items()
    }


@steady
@given(st.data())
def test_any_structure_comes_back_equal(tmp_path_factory, data):
    domain = data.draw(domains())
    structure = data.draw(
        st.one_of(
            canonical_models(),
            graphs(domain),
            feature_lists(domain).map(lambda listed: FeatureSet(domain, listed)),
        )
    )
    path = tmp_path_factory.mktemp("any") / "m.unless"
    save_record(Record(structure), path)
    assert load_record(path).structure == structure


def test_many_levels_need_wider_codes(tmp_path):
    domain = Domain((Variable("many", tuple(map(str, range(300)))),))
    rows = np.arange(300, dtype=np.uint16)[:, None]
    model = CanonicalModel.from_edges(domain, rows, np.ones(300, np.int64), np.zeros((300, 0), np.uint8))
    save_record(Record(model), tmp_path / "m.unless")
    assert load_record(tmp_path / "m.unless").structure == model


def test_the_same_record_gives_the_same_bytes_in_every_process(tmp_path):
    program = (
        "import sys; from unless.data.domain import *; from unless.formats.record import *;"
        "from unless.structures.graph import Graph;"
        "domain = Domain(tuple(Variable(n, ('x', 'y')) for n in 'edcba'));"
        "pairs = {('a', 'b'), ('c', 'b'), ('e', 'd'), ('a', 'e')};"
        "settings = {'b': 1, 'a': pairs, 'c': {'z', 'y'}};"
        "save_record(Record(Graph(domain, pairs), 'GSMN', settings), sys.argv[1])"
    )
    contents = set()
    for seed in "012":
        path = tmp_path / f"{seed}.unless"
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC+{seed}"}
        subprocess.run([sys.executable, "-c", program, path], env=environment, check=True)
        contents.add(path.read_bytes())
    assert len(contents) == 1


def test_the_arrays_are_plain_npy_that_numpy_reads_and_would_write(tmp_path):
    save_record(Record(small_model()), tmp_path / "m.unless")
    with np.load(tmp_path / "m.unless", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["counts"], [5, 1, 7])
        np.testing.assert_array_equal(arrays["rows"], small_model().rows)
    buffer = io.BytesIO()
    np.save(buffer, np.array([5, 1, 7]))
    assert members_of(tmp_path / "m.unless")["counts.npy"] == buffer.getvalue()


def test_numpy_scalars_are_saved_as_numbers(tmp_path):
    values = {"a": np.int64(3), "b": np.float64(0.5), "c": np.bool_(True), "d": np.str_("x")}
    save_record(Record(small_features(), results=values), tmp_path / "m.unless")
    loaded = load_record(tmp_path / "m.unless").results
    assert loaded == {"a": 3, "b": 0.5, "c": True, "d": "x"}
    assert [type(value) for value in loaded.values()] == [int, float, bool, str]


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        2**63,
        object(),
        {"a": 1},
        [[1, 2]],
        [("a", "b", "c")],
        b"x",
        [math.nan],
        [2**63],
        [{"a": math.inf}],
    ],
)
def test_what_cannot_be_kept_is_refused_and_leaves_no_file(value, tmp_path):
    with pytest.raises(SettingError, match=r"^alpha=.* cannot be saved"):
        save_record(Record(small_model(), settings={"alpha": value}), tmp_path / "m.unless")
    assert list(tmp_path.iterdir()) == []


def test_names_that_are_no_text_are_refused(tmp_path):
    domain = Domain((Variable("\ud800", ("a",)),))
    with pytest.raises(SettingError, match="not valid Unicode"):
        save_record(Record(Graph(domain)), tmp_path / "m.unless")


def test_a_graph_in_a_context_is_not_saved_without_it(tmp_path):
    with pytest.raises(SettingError, match="save the model it came from"):
        save_record(Record(small_model().given({"Dept": "A"})), tmp_path / "m.unless")


def test_saving_obeys_the_umask_and_replaces_what_was_there(tmp_path):
    new, old = tmp_path / "new.unless", tmp_path / "old.unless"
    old.write_text("old")
    old.chmod(0o604)
    before = os.umask(0o027)
    try:
        for path in (new, old):
            save_record(Record(small_features()), path)
    finally:
        os.umask(before)
    # What replaces a file keeps who may read it.
    assert [stat.S_IMODE(path.stat().st_mode) for path in (new, old)] == [0o640, 0o604]
    assert load_record(old).structure == small_features()
    assert sorted(tmp_path.iterdir()) == [new, old]


@pytest.mark.parametrize("record", [Record(small_model()), Record(small_features(), table=small_table())])
def test_a_file_that_holds_rows_is_for_its_owner_unless_it_replaces_another(record, tmp_path):
    before = os.umask(0o022)
    try:
        save_record(record, tmp_path / "new")
        (tmp_path / "old").write_text("old")
        (tmp_path / "old").chmod(0o640)
        save_record(record, tmp_path / "old")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("new", "old")]
    assert modes == [0o600, 0o640]
    assert len(list(tmp_path.iterdir())) == 2


def test_saving_through_a_link_keeps_the_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "m.unless")
    save_record(Record(small_model()), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load_record(tmp_path / "m.unless").structure == small_model()


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "m.unless"
    save_record(Record(small_model()), path)
    before = path.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: .*m\.unless'$"):
        save_record(Record(small_features()), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_named_as_the_caller_wrote_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere/m\.unless'$"):
        save_record(Record(small_model()), tmp_path / "nowhere" / "m.unless")
    with pytest.raises(FileNotFoundError):
        load_record(tmp_path / "m.unless")


def test_every_truncation_is_noticed(record, tmp_path):
    path = tmp_path / "m.unless"
    save_record(record, path)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(FileFormatError, match=r"^[^\n]*\.$"):
            load_record(path)


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_every_damaged_byte_is_noticed_or_harmless(record, flip, tmp_path):
    path = tmp_path / "m.unless"
    save_record(record, path)
    content = path.read_bytes()
    notices = []
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= flip
        path.write_bytes(damaged)
        try:
            assert load_record(path) == record
        except FileFormatError as error:
            notices.append(str(error))
    assert len(notices) > len(content) / 2
    assert all(notice.startswith(repr(str(path))) and notice.endswith(".") for notice in notices)


@pytest.mark.parametrize("member", ["model.json", "rows.npy", "counts.npy", "graphs.npy", "graph_index.npy"])
def test_members_damaged_under_a_right_checksum_are_noticed_or_valid(member, tmp_path):
    # A checksum guards against accidents; a hostile file has a right one.
    path = tmp_path / "m.unless"
    save_record(Record(small_model(), "CSGS", SETTINGS), path)
    members = members_of(path)
    for position in range(len(members[member])):
        for flip in (0x01, 0x04, 0x80, 0xFF):
            damaged = bytearray(members[member])
            damaged[position] ^= flip
            write_members(path, {**members, member: bytes(damaged)})
            try:
                model = load_record(path).structure
            except FileFormatError:
                continue
            assert len([graph.edges for _, graph in model]) == 3
            assert model.features()


@pytest.mark.parametrize("member", ["start.npy", "variable.npy", "level.npy", "equal.npy"])
def test_feature_members_damaged_under_a_right_checksum_are_noticed_or_valid(member, tmp_path):
    path = tmp_path / "m.unless"
    save_record(Record(small_features()), path)
    members = members_of(path)
    for position in range(len(members[member])):
        for flip in (0x01, 0x02, 0x80, 0xFF):
            damaged = bytearray(members[member])
            damaged[position] ^= flip
            write_members(path, {**members, member: bytes(damaged)})
            try:
                features = load_record(path).structure
            except FileFormatError:
                continue
            assert len(list(features)) == 2


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"PK\x03\x04", b"PK\x05\x06" + bytes(18), bytes(range(256))]
)
def test_foreign_files_are_refused(content, tmp_path):
    (tmp_path / "m.unless").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"not an \.unless file"):
        load_record(tmp_path / "m.unless")


@pytest.mark.parametrize("place", ["before", "after", "comment", "gap"])
def test_bytes_that_are_not_its_own_are_refused(place, tmp_path):
    path = tmp_path / "m.unless"
    save_record(Record(small_model()), path)
    content = path.read_bytes()
    listed = content.index(b"PK\1\2")
    # The last two bytes count those of a comment, the four before them say where the list begins.
    moved = (listed + 7).to_bytes(4, "little") + content[-2:]
    spoiled = {
        "before": b"garbage" + content,
        "after": content + b"garbage",
        "comment": content[:-2] + b"\7\0garbage",
        "gap": content[:listed] + b"garbage" + content[listed:-6] + moved,
    }
    path.write_bytes(spoiled[place])
    with pytest.raises(FileFormatError, match="is damaged"):
        load_record(path)


def test_other_zips_are_refused(tmp_path):
    path = tmp_path / "m.unless"
    write_members(path, {"word/document.xml": b"<xml/>"})
    with pytest.raises(FileFormatError, match=r"holds no model\.json"):
        load_record(path)
    write_members(path, {"model.json": b'{"format": "other", "version": 1}'})
    with pytest.raises(FileFormatError, match=r"not an \.unless file"):
        load_record(path)
    write_members(path, {"model.json": b"[" * 100_000})
    with pytest.raises(FileFormatError):
        load_record(path)


def test_a_bomb_is_refused_unopened(tmp_path):
    path = tmp_path / "m.unless"
    write_members(path, {"model.json": bytes(10**7)}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 10**5
    with pytest.raises(FileFormatError, match="not stored the way"):
        load_record(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_given_twice_is_refused(tmp_path):
    path = tmp_path / "m.unless"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.json", b"{}")
        archive.writestr("model.json", b"{}")
    with pytest.raises(FileFormatError, match="appears twice"):
        load_record(path)


@pytest.mark.parametrize(
    ("changes", "trouble"),
    [
        ({"version": 3}, "written by a newer Unless"),
        ({"version": 1}, "written by an older Unless .* learn or fit again from the table"),
        ({"version": 0}, "no version 0"),
        ({"version": "1"}, "damaged or is not"),
        ({"surprise": 1}, "unknown field `surprise`"),
        ({"structure__n_contexts": 10**15}, "another type or size"),
        ({"structure__n_contexts": -1}, "n_contexts"),
        ({"structure__n_graphs": 3}, "graphs.npy has another type or size"),
        ({"structure__type": "tree"}, "Invalid value 'tree'"),
        ({"structure__type": "graph"}, "unknown field `n_contexts`"),
        ({"domain": []}, "another type or size"),
        ({"domain": [{"name": "a", "levels": ["x", "x"], "kind": "text"}]}, "level twice"),
        ({"domain": [{"name": "a", "levels": [], "kind": "text"}]}, "no levels"),
        ({"domain": [{"name": "a", "levels": ["x"], "kind": "mystery"}]}, "mystery"),
        ({"settings": {"alpha": {}}}, r"settings\[...\]"),
        ({"learner": 3}, "learner"),
    ],
)
def test_a_wrong_model_json_is_refused(changes, trouble, tmp_path):
    path = tmp_path / "m.unless"
    save_record(Record(small_model()), path)
    change(path, **changes)
    with pytest.raises(FileFormatError, match=trouble):
        load_record(path)


@pytest.mark.parametrize(
    ("name", "edit", "trouble"),
    [
        ("counts.npy", lambda counts: counts * 0, "not positive"),
        ("counts.npy", lambda counts: -counts, "not positive"),
        ("counts.npy", lambda counts: counts + 2**61, "not positive"),
        ("counts.npy", lambda counts: counts.astype(float), "another type"),
        ("rows.npy", lambda rows: rows + 1, "out of range"),
        ("rows.npy", lambda rows: rows[::-1].copy(), "not distinct and in order"),
        ("rows.npy", lambda rows: rows[[0, 0, 1]], "not distinct and in order"),
        ("rows.npy", lambda rows: rows[:2], "another type or size"),
        ("graph_index.npy", lambda index: index + 1, "not there"),
        ("graph_index.npy", lambda index: index - 1, "not there"),
        ("graph_index.npy", lambda index: index * 0, "belongs to no context"),
        ("graphs.npy", lambda graphs: graphs + 8, "after the last pair"),
        ("graph_index.npy", lambda index: 1 - index, "graphs are not distinct and in order"),
        ("graphs.npy", lambda graphs: graphs[[0, 0]], "graphs are not distinct and in order"),
    ],
)
def test_wrong_arrays_of_a_model_are_refused(name, edit, trouble, tmp_path):
    path = tmp_path / "m.unless"
    save_record(Record(small_model()), path)
    change_array(path, name, edit)
    with pytest.raises(FileFormatError, match=trouble):
        load_record(path)


@pytest.mark.parametrize(
    ("name", "edit", "trouble"),
    [
        ("start.npy", lambda start: start[::-1].copy(), "follow one another"),
        ("start.npy", lambda start: np.array([0, 0, 3]), "follow one another"),
        ("variable.npy", lambda variable: variable + 1, "outside the domain"),
        ("variable.npy", lambda variable: variable - 1, "outside the domain"),
        ("level.npy", lambda level: level + 5, "outside the domain"),
        ("equal.npy", lambda equal: equal + 2, "neither equal nor unequal"),
        ("equal.npy", lambda equal: equal * 0, "not distinct and in order"),
    ],
)
def test_wrong_arrays_of_features_are_refused(name, edit, trouble, tmp_path):
    path = tmp_path / "m.unless"
    save_record(Record(small_features()), path)
    change_array(path, name, edit)
    with pytest.raises(FileFormatError, match=trouble):
        load_record(path)


@pytest.mark.parametrize(
    ("name", "edit", "trouble"),
    [
        ("counts.npy", lambda counts: counts * 0, "not positive"),
        ("rows.npy", lambda rows: rows + 1, "out of range"),
        ("rows.npy", lambda rows: rows[::-1].copy(), "not distinct and in order"),
        ("rows.npy", lambda rows: rows[:2], "another type or size"),
    ],
)
def test_a_wrong_table_is_refused(name, edit, trouble, tmp_path):
    path = tmp_path / "m.unless"
    save_record(Record(STRUCTURES["graph"], table=small_table()), path)
    assert load_record(path).table == small_table()
    change_array(path, name, edit)
    with pytest.raises(FileFormatError, match=trouble):
        load_record(path)


def test_a_table_of_other_columns_is_refused():
    other = small_table().select(["Dept", "Admit"])
    with pytest.raises(SettingError, match="other columns or levels"):
        Record(STRUCTURES["graph"], table=other)


def test_a_missing_or_strange_member_is_refused(tmp_path):
    path = tmp_path / "m.unless"
    save_record(Record(STRUCTURES["graph"]), path)
    members = members_of(path)
    write_members(path, {"model.json": members["model.json"]})
    with pytest.raises(FileFormatError, match=r"its members are not links\.npy and model\.json"):
        load_record(path)
    write_members(path, {**members, "virus.exe": b""})
    with pytest.raises(FileFormatError, match="its members are not"):
        load_record(path)
    write_members(path, {**members, "links.npy": members["links.npy"][:-1] + b"\xff"})
    with pytest.raises(FileFormatError, match="after the last pair"):
        load_record(path)
