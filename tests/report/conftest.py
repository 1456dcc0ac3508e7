"""Reports of small tables, and a browser to look at them with."""

import shutil
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import msgspec
import numpy as np
import pytest

import unless
from unless.knowledge.statements import Statements
from unless.report.html import render
from unless.report.page import Page
from unless.report.writing import gather

# As Debian's package needs to be started without a screen and away from any network.
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="session")
def berkeley():
    return unless.CSGS().fit(unless.datasets.load_ucb_admissions())


@pytest.fixture(scope="session")
def titanic():
    return unless.CSGS().fit(unless.datasets.load_titanic())


@pytest.fixture(scope="session")
def berkeley_page(berkeley):
    network = berkeley.network(berkeley.data_)
    return gather(berkeley.data_, berkeley.statements_, network=network)


@pytest.fixture(scope="session")
def titanic_page(titanic):
    return gather(titanic.data_, titanic.statements_, network=titanic.network(titanic.data_))


@pytest.fixture(scope="session")
def kinds():
    """Return a table, and statements about it of every kind."""
    rng, n = np.random.default_rng(18), 3000
    gate, x, first, noise, area = (rng.integers(0, size, n) for size in (3, 2, 2, 2, 6))
    copied = rng.random((3, n)) < np.array([[0.6], [0.7], [0.7]])
    y = np.where((gate == 1) & copied[0], x, rng.integers(0, 2, n))
    second = np.where(copied[1], first, rng.integers(0, 2, n))
    third = np.where(copied[2], second, rng.integers(0, 2, n))
    columns = {
        "gate": gate, "x": x, "y": y, "first": first, "second": second, "third": third, "noise": noise,
        "area": area, "country": area // 2, "a collider": (first + noise + copied[0]) % 4,
    }  # fmt: skip
    data = unless.read({name: [f"{name[0]}{code}" for code in codes] for name, codes in columns.items()})
    found = unless.explain(unless.Graph(data.domain, combinations(data.names, 2)), data)
    # The table shows no link that is partly known, so one is made of a difference.
    one = found.about("gate", "x")
    partly = replace(
        one,
        kind="partly",
        sentence=one.sentence.replace(", more strongly when y = y0 than elsewhere", " when y = y0"),
    )
    statements = tuple(partly if each is one else each for each in found)
    return data, Statements(statements, found.note, found.settings, found.domain)


@pytest.fixture(scope="session")
def kinds_file(kinds, tmp_path_factory):
    data, statements = kinds
    path = tmp_path_factory.mktemp("report") / "kinds.html"
    path.write_text(render(gather(data, statements, title="Kinds")), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def titanic_file(titanic, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "titanic.html"
    titanic.report(path, title="Titanic", network=True)
    return path


@pytest.fixture(scope="session")
def read_page():
    """Return what the data block of a page holds."""

    def read(path: Path) -> Page:
        text = path.read_text(encoding="utf-8")
        begin = text.index('<script type="application/json" id="page-data">')
        block = text[text.index(">", begin) + 1 : text.index("</script>", begin)]
        return msgspec.json.decode(block, type=Page)

    return read


@pytest.fixture(scope="session")
def browser():
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no /usr/bin/chromium; on Debian: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture
def visit(browser):
    """Open a file in the browser; afterwards no request may have left and no error been logged."""
    contexts, wrong = [], []

    def look(path: Path, width: int = 1280, height: int = 900, **settings):
        context = browser.new_context(
            viewport={"width": width, "height": height}, offline=True, accept_downloads=True, **settings
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        address = path.as_uri()
        page.on(
            "request", lambda request: None if allowed(request.url, address) else wrong.append(request.url)
        )
        page.on(
            "console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(address)
        page.wait_for_selector("html[data-ready]", state="attached")
        return page

    yield look
    for context in contexts:
        context.close()
    assert wrong == []


def allowed(url: str, address: str) -> bool:
    return url.split("#", maxsplit=1)[0] == address or url.startswith(("data:", "blob:"))
