"""The order in which files of tests start: the long ones first, so that none is waited for at the end."""

from pathlib import Path

HERE = Path(__file__).parent
# The first few compile most kernels, each of them others: what several processes compile at once is compiled
# several times. Then come the longest of the others. The documents use every kernel, and wait for them.
FIRST = (
    "contracts/test_learners.py",
    "inference/test_exact.py",
    "learners/test_gsmn.py",
    "experiments/test_running.py",
    "learners/test_csgs.py",
    "evaluation/test_comparison.py",
    "learners/test_cluster.py",
    "formats/test_record.py",
    "learners/test_oracle.py",
    "formats/test_garbage.py",
    "cli/test_determinism.py",
    "learners/test_ibmap.py",
    "learners/test_stopping.py",
    "learners/test_ggs.py",
    "test_documents.py",
    "cli/test_paper.py",
    "data/test_read.py",
    "weights/test_threads.py",
)


def pytest_collection_modifyitems(items):
    place = {HERE / name: number for number, name in enumerate(FIRST)}
    assert all(path.exists() for path in place)
    items.sort(key=lambda item: place.get(item.path, len(FIRST)))
