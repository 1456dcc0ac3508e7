import json


def test_the_finding_everybody_can_check(unless):
    result = unless("demo")
    assert (result.exit_code, result.stderr) == (0, "")
    sentences = [line.strip() for line in result.stdout.splitlines() if line.startswith("  ")]
    told = "Admit depends on Gender only when Dept = A (933 of 4,526 rows, V = .14, q = 2e-4)."
    assert sentences[0] == told
    assert "Age depends on Survived only when Class in {1st, 2nd} and Sex = Male" in " ".join(sentences[:5])
    assert result.stdout.index("ucb_admissions") < result.stdout.index("titanic")


def test_one_table(unless):
    assert "ucb_admissions" not in unless("demo", "--data", "titanic").stdout
    told = json.loads(unless("demo", "--data", "titanic", "--json").stdout)
    assert [document["dataset"] for document in told] == ["titanic"]
