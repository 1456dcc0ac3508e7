import json


def test_the_finding_everybody_can_check(unless):
    result = unless("demo")
    assert (result.exit_code, result.stderr) == (0, "")
    sentences = [line.strip() for line in result.stdout.splitlines() if line.startswith("  ")]
    assert sentences[0].startswith(
        "Admit and Gender are linked only when Dept = A (Admit = Admitted: 82 % where"
    )
    assert "Age and Survived are linked only when Class in {1st, 2nd}, given Sex (" in " ".join(sentences)
    assert "Confidence is the probability that the sentence is true." in result.stdout
    assert result.stdout.index("ucb_admissions") < result.stdout.index("titanic")


def test_one_table(unless):
    assert "ucb_admissions" not in unless("demo", "--data", "titanic").stdout
    told = json.loads(unless("demo", "--data", "titanic", "--json").stdout)
    assert [(document["dataset"], document["learner"]) for document in told] == [("titanic", "GGS")]
