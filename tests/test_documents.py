"""What the documents show runs, and shows what it says."""

import doctest
import importlib
import linecache
import pkgutil
import re
from pathlib import Path

import pytest

import benchmarks
import studies
import unless

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
PACKAGES = (unless, benchmarks, studies)
MODULES = sorted(
    module.name
    for package in PACKAGES
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
)
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def write_survey(path):
    """Write the Berkeley table row by row: the file the pages read."""
    data = unless.datasets.load_ucb_admissions()
    lines = [",".join(data.names)]
    for row, count in zip(data.rows, data.counts, strict=True):
        lines += [",".join(data.domain.decode(row).values())] * int(count)
    path.write_text("\n".join(lines))


def blocks(page):
    return BLOCK.findall(page.read_text())


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_the_code_on_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_survey(tmp_path / "survey.csv")
    names = {}
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), names)
    assert names


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_hold(name):
    # doctest asks of every file that was ever shown a line of whether it has changed.
    linecache.clearcache()
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []
