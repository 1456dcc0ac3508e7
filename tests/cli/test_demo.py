import json


def test_the_finding_everybody_can_check(unless):
    result = unless("demo")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Admit - Gender: linked only where Dept = A (933 of 4,526 rows)." in result.stdout
    assert result.stdout.index("ucb_admissions") < result.stdout.index("titanic")


def test_one_table(unless):
    assert "ucb_admissions" not in unless("demo", "--data", "titanic").stdout
    told = json.loads(unless("demo", "--data", "titanic", "--json").stdout)
    assert [document["dataset"] for document in told] == ["titanic"]
