"""Take the pictures of reports that the documents show: python docs/reports/pictures.py ALARM.csv.gz."""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import unless

HERE = Path(__file__).parent
WIDTH = 1200


def reports(alarm: str) -> dict[str, tuple[unless.CSGS, str]]:
    """Learn from the three tables."""
    return {
        "berkeley": (
            unless.CSGS().fit(unless.datasets.load_ucb_admissions()),
            "Admissions to Berkeley, 1973",
        ),
        "titanic": (unless.CSGS().fit(unless.datasets.load_titanic()), "Who survived the Titanic"),
        "alarm": (unless.CSGS().fit(alarm), "ALARM: what a monitor of patients sees"),
    }


def prepare(page, name: str) -> None:
    """Bring the page to what the picture shows."""
    if name == "berkeley":
        page.get_by_role("group", name="Dept").get_by_label("C 918").check()
    if name == "titanic":
        page.locator("#states button", has_text="Age – Survived").click()
    if name == "alarm":
        page.get_by_role("group", name="MINV").get_by_label("HIGH").check()
    page.evaluate("window.scrollTo(0, 0)")
    if name != "berkeley":
        page.evaluate("document.getElementById('explorer').scrollIntoView()")
    page.wait_for_timeout(300)


def main() -> None:
    """Take the pictures, in few colours, which keeps them small."""
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        for name, (est, title) in reports(sys.argv[1]).items():
            path = Path(folder) / f"{name}.html"
            est.report(path, title=title, network=name != "alarm")
            height = {"berkeley": 1010, "titanic": 1400, "alarm": 860}[name]
            page = browser.new_page(viewport={"width": WIDTH, "height": height})
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready]", state="attached")
            prepare(page, name)
            picture = Image.open(io.BytesIO(page.screenshot()))
            picture.convert("RGB").quantize(96).save(HERE / f"{name}.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
