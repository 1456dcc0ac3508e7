import os
import re

import pytest


def test_a_model_that_keeps_its_rows_needs_no_table(unless, berkeley, tmp_path):
    result = unless("report", berkeley, "-o", tmp_path / "r.html", "--title", "Berkeley")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("Wrote ")
    text = (tmp_path / "r.html").read_text()
    assert "Admit and Gender are linked only when Dept = A" in text
    assert "<title>Berkeley</title>" in text


def test_a_model_without_rows_asks_for_the_table(unless, berkeley_csv, tmp_path):
    model = tmp_path / "g.unless"
    assert unless("learn", berkeley_csv, "-o", model, "--learner", "GSMN", "--no-rows").exit_code == 0
    refused = unless("report", model, "-o", tmp_path / "r.html")
    assert refused.exit_code == 2
    assert "keeps no rows; name the table as well" in refused.stderr
    assert not (tmp_path / "r.html").exists()
    assert unless("report", model, berkeley_csv, "-o", tmp_path / "r.html").exit_code == 0
    assert "Dept and Gender are linked" in (tmp_path / "r.html").read_text()


def test_a_network_brings_its_probabilities(unless, fitted, berkeley_csv, tmp_path):
    assert unless("report", fitted, berkeley_csv, "-o", tmp_path / "r.html").exit_code == 0
    assert (
        "Exact: the page holds the probabilities of all 24 combinations" in (tmp_path / "r.html").read_text()
    )
    refused = unless("report", fitted, "-o", tmp_path / "q.html")
    assert refused.exit_code == 2
    assert "name the table as well" in refused.stderr


def test_probabilities_are_fitted_on_request(unless, berkeley, fitted, tmp_path):
    page = tmp_path / "r.html"
    assert unless("report", berkeley, "-o", page).exit_code == 0
    assert (
        "Write it with est.report(path, network=True), or with unless report --what-if." in page.read_text()
    )
    assert unless("report", berkeley, "-o", page, "--what-if").exit_code == 0
    assert "Exact: the page holds the probabilities of all 24 combinations" in page.read_text()
    refused = unless("report", berkeley, "-o", page, "--what-if", "--network", fitted)
    assert refused.exit_code == 2
    assert "give one of them" in refused.stderr


def test_a_page_never_replaces_its_model(unless, berkeley):
    before = berkeley.read_bytes()
    refused = unless("report", berkeley, "-o", berkeley)
    assert (refused.exit_code, berkeley.read_bytes()) == (2, before)


def test_the_page_is_opened_on_request(unless, berkeley, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("click.launch", opened.append)
    unless("report", berkeley, "-o", tmp_path / "r.html", "--open")
    assert opened == [(tmp_path / "r.html").resolve().as_uri()]


def test_the_demo_writes_a_page(unless, tmp_path):
    result = unless("demo", "--data", "titanic", "--report", tmp_path / "demo.html")
    assert result.exit_code == 0
    assert re.search("<h1>.*Titanic", (tmp_path / "demo.html").read_text())


@pytest.mark.parametrize("place", ["nowhere/r.html", "."])
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    unless, berkeley, tmp_path, monkeypatch, place
):
    monkeypatch.chdir(tmp_path)
    assert unless("report", berkeley, "-o", place).exit_code == 2


def test_a_page_holds_rows_and_is_for_its_owner_unless_it_replaces_another(unless, berkeley, tmp_path):
    before = os.umask(0o022)
    try:
        (tmp_path / "old.html").write_text("old")
        (tmp_path / "old.html").chmod(0o640)
        for name in ("new.html", "old.html"):
            assert unless("report", berkeley, "-o", tmp_path / name).exit_code == 0
    finally:
        os.umask(before)
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("new.html", "old.html")]
    assert modes == [0o600, 0o640]


def test_a_model_written_again_keeps_who_may_read_it(unless, berkeley_csv, tmp_path):
    model = tmp_path / "m.unless"
    for more in ([], ["--no-rows"]):
        assert unless("learn", berkeley_csv, "-o", model, *more).exit_code == 0
        assert model.stat().st_mode & 0o777 == 0o600


def test_a_page_about_one_column(unless, berkeley, contexts, berkeley_csv, tmp_path):
    import unless as library

    page = tmp_path / "page.html"
    assert unless("report", berkeley, "-o", page, "--target", "Admit").exit_code == 0
    text = page.read_text()
    assert "<h1>What matters for Admit</h1>" in text
    first, second = text.index("more common when Dept = F"), text.index("more common when Gender = Male")
    assert first < second
    assert "Dept and Gender are linked" not in text
    assert unless("report", berkeley, "-o", page, "--target", "Admit", "--title", "Mine").exit_code == 0
    assert "<h1>Mine</h1>" in page.read_text()
    assert "more common" not in _whole(unless, berkeley, page)
    assert unless("report", berkeley, "-o", page, "--target", "Admti").exit_code == 2
    library.load(berkeley).report(page, target="Gender")
    assert "<h1>What matters for Gender</h1>" in page.read_text()


def _whole(unless, model, page):
    unless("report", model, "-o", page)
    return page.read_text()


def test_a_saved_classifier_is_shown_and_reported(unless, tmp_path):
    import unless as library

    model, page = tmp_path / "c.unless", tmp_path / "page.html"
    data = library.datasets.load_titanic()
    library.save(library.UnlessClassifier(target="Survived").fit(data), model)
    shown = unless("show", model).stdout
    assert shown.startswith("UnlessClassifier, 2,201 rows")
    assert "What matters for Survived, most first:" in shown
    assert unless("report", model, "-o", page).exit_code == 0
    assert "<h1>What matters for Survived</h1>" in page.read_text()
