"""Each wrong word about models: one sentence, exit code 2, nothing on stdout, no file left behind."""

import shutil

import pytest

# The command line, and a word the sentence must hold. LEARNED, FITTED, CERTAIN, TABLE stand for files.
BAD = [
    ("fit LEARNED TABLE -o m.txt", ".unless, .mn, .uai, .bif or .json"),
    ("fit LEARNED TABLE -o m.graphml", ".unless, .mn, .uai, .bif or .json"),
    ("fit LEARNED TABLE -o m.xml", ".unless, .mn, .uai, .bif or .json"),
    ("fit LEARNED TABLE", "--output"),
    ("fit LEARNED -o m.mn", "FILE"),
    ("fit LEARNED nowhere.csv -o m.mn", "nowhere.csv"),
    ("fit nowhere.unless TABLE -o m.mn", "nowhere.unless"),
    ("fit LEARNED TABLE -o nowhere/m.mn", "no folder"),
    ("fit LEARNED TABLE -o LEARNED", "is the input itself"),
    ("fit TABLE TABLE -o m.mn", "is not an .unless file"),
    ("fit LEARNED TABLE -o m.mn --sd 0", "above 0"),
    ("fit LEARNED TABLE -o m.mn --sd nan", "above 0"),
    ("fit LEARNED TABLE -o m.mn --l1 -1", "0 or more"),
    ("fit LEARNED TABLE -o m.mn --l1 inf", "0 or more"),
    ("fit LEARNED TABLE -o m.mn --sd few", "few"),
    ("fit LEARNED TABLE -o m.mn --sd 1 --no-prior", "--no-prior and --sd"),
    ("fit FITTED TABLE -o m.mn --features pairs", "--features pairs"),
    ("fit LEARNED STRANGE -o m.mn", "'Z' in column 'Dept' (row 2) is not among the levels the model knows"),
    ("fit LEARNED NARROW -o m.mn", "The model speaks of 'Dept', which is not a column of the table"),
    ("fit LEARNED ONESIDED -o m.mn --no-prior", "leave out --no-prior"),
    ("fit LEARNED TABLE -o m.mn --columns Dept", "--columns"),
    ("query LEARNED Admit", "without weights"),
    ("query nowhere.mn Admit", "nowhere.mn"),
    ("query TABLE Admit", "cannot be read as"),
    ("query FITTED", "Name a variable"),
    ("query FITTED Admt", "did you mean 'Admit'?"),
    ("query FITTED Admit Admit", "twice"),
    ("query FITTED Admit --given Dept", "NAME=LABEL"),
    ("query FITTED Admit --given Dept=Z", "'Z' is not a level of 'Dept'"),
    ("query FITTED Admit --given Dept=A --given Dept=B", "'Dept' twice"),
    ("query FITTED Admit --method guess", "guess"),
    ("query FITTED --map --method gibbs", "--map is answered exactly"),
    ("query FITTED Admit --seed -1", "-1"),
    ("query FITTED Admit --max-memory much", "--max-memory"),
    ("query CERTAIN a --given a=0 --given b=1", "probability zero"),
    ("query CERTAIN a --given a=0 --given b=1 --method gibbs", "cannot start"),
    ("query BROKEN a", "line 3"),
    ("sample LEARNED", "without weights"),
    ("sample FITTED -n 0", "0 is not in the range"),
    ("sample FITTED -n many", "many"),
    ("sample FITTED -o FITTED", "is the model itself"),
    ("sample FITTED -o nowhere/s.csv", "no folder"),
    ("sample FITTED --given Dept=Z -o s.csv", "'Z'"),
    ("sample CERTAIN --given a=0 --given b=1 -o s.csv", "probability zero"),
    ("score LEARNED TABLE", "without weights"),
    ("score FITTED", "FILE"),
    ("score FITTED nowhere.csv", "nowhere.csv"),
    ("score FITTED STRANGE", "'Z' in column 'Dept' (row 2) is not among the levels the model knows"),
    ("score FITTED NARROW", "The model speaks of 'Dept', which is not a column of the table"),
    ("score FITTED TABLE --by-variable", "only for --pll"),
    ("convert FITTED FITTED", "is the input itself"),
    ("convert FITTED m.xml", ".unless, .mn, .uai, .bif, .json or .graphml"),
    ("convert FITTED m", ".unless, .mn, .uai, .bif, .json or .graphml"),
    ("convert LEARNED m.mn", "holds no weights"),
    ("convert nowhere.mn m.uai", "nowhere.mn"),
    ("convert TABLE m.uai", "is not an .unless file"),
    ("convert BROKEN m.uai", "line 3"),
    ("convert FITTED nowhere/m.mn", "no folder"),
    ("convert FITTED", "OUT"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch, berkeley, berkeley_csv, fitted, certain):
    for path in (berkeley, berkeley_csv, fitted, certain):
        shutil.copy(path, tmp_path)
    (tmp_path / "broken.mn").write_text("2,2\nMN {\n1.0 +v0_7\n}\n")
    (tmp_path / "strange.csv").write_text("Gender,Dept,Admit\nMale,A,Admitted\nMale,Z,Rejected\n")
    (tmp_path / "narrow.csv").write_text("Gender,Admit\nMale,Admitted\nFemale,Rejected\n")
    (tmp_path / "onesided.csv").write_text("Gender,Dept,Admit\nMale,A,Admitted\nFemale,A,Rejected\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("line", "expected"), BAD, ids=[line for line, _ in BAD])
def test_a_wrong_word_is_refused_in_one_sentence(unless, folder, line, expected):
    files = {
        "LEARNED": "berkeley.unless",
        "FITTED": "fitted.unless",
        "CERTAIN": "certain.unless",
        "TABLE": "berkeley.csv",
        "STRANGE": "strange.csv",
        "NARROW": "narrow.csv",
        "ONESIDED": "onesided.csv",
        "BROKEN": "broken.mn",
    }
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = unless(*(files.get(word, word) for word in line.split()))
    assert (result.exit_code, result.stdout) == (2, ""), result.stderr
    assert expected in result.stderr
    assert result.stderr.startswith("unless: ")
    assert result.stderr.endswith((".\n", "?\n"))
    assert result.stderr.count("\n") == 1
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_names_beside_the_output_hide_no_input(unless, folder):
    (folder / "m.mn.names.json").write_bytes((folder / "fitted.unless").read_bytes())
    result = unless("convert", "m.mn.names.json", "m.mn")
    assert result.exit_code == 2
    assert "'m.mn.names.json' is the input itself" in result.stderr
    (folder / "t.mn.names.json").write_bytes((folder / "berkeley.csv").read_bytes())
    result = unless("fit", "berkeley.unless", "t.mn.names.json", "-o", "t.mn")
    assert result.exit_code == 2
    assert "'t.mn.names.json' is the table itself" in result.stderr
