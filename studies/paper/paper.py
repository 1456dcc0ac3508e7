"""The whole of it: run the plan, then write tables, claims and figures from its files."""

from pathlib import Path

from studies.paper.figures import check_drawing, draw_figures
from studies.paper.plan import Plan
from studies.paper.results import Results, means_csv, networks_csv, times_csv
from studies.paper.running import measure_missing
from studies.paper.store import Store
from studies.paper.writing import claims_page, numbers_page
from unless.runtime.files import replacing


def run_paper(plan: Plan, folder: Path, n_jobs: int = -1, show_progress: bool | None = None) -> Results:
    """Repeat the paper's experiments into a folder; one that was begun there is gone on with."""
    check_drawing()
    folder.mkdir(parents=True, exist_ok=True)
    measure_missing(plan, folder, n_jobs, show_progress)
    results = Results.of(plan, Store(folder))
    pages = {
        "networks.csv": networks_csv(results),
        "means.csv": means_csv(results),
        "times.csv": times_csv(results),
        "claims.md": claims_page(results),
        "numbers.md": numbers_page(results),
    }
    for name, text in pages.items():
        with replacing(folder / name) as stream:
            stream.write(text.encode())
    draw_figures(results, folder)
    return results
