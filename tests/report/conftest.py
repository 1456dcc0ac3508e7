"""Reports of small tables, and a browser to look at them with."""

import shutil
from pathlib import Path

import msgspec
import pytest

import unless
from unless.report.build import build
from unless.report.page import Page

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
    return build(berkeley.structure_, berkeley.data_, berkeley.statements_, network=network)


@pytest.fixture(scope="session")
def titanic_page(titanic):
    return build(
        titanic.structure_, titanic.data_, titanic.statements_, network=titanic.network(titanic.data_)
    )


@pytest.fixture(scope="session")
def titanic_file(titanic, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "titanic.html"
    titanic.report(path, title="Titanic")
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
