"""Keep compiled kernels and sources in step: numba sees a change of a file, not of those it calls."""

from pathlib import Path

KERNELS = Path(__file__).parent.parent / "src" / "unless" / "kernels"


def pytest_configure(config):
    if hasattr(config, "workerinput"):
        return
    newest = max(source.stat().st_mtime for source in KERNELS.glob("*.py"))
    cached = list((KERNELS / "__pycache__").glob("*.nb[ci]"))
    if cached and min(path.stat().st_mtime for path in cached) < newest:
        for path in cached:
            path.unlink()
