"""The order in which files of tests start: the long ones first, so that none is waited for at the end."""

import gc
from pathlib import Path

import pytest
from hypothesis import settings

HERE = Path(__file__).parent
# No test asserts a time: an example is slow where a kernel is compiled for it, or the machine is busy.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
# The first three compile most kernels, each of them others: what processes compile at once is compiled
# several times. The next need few. Then come those that start processes of their own, and the documents, for
# which all kernels had better be there.
FIRST = (
    "contracts/test_learners.py",
    "inference/test_exact.py",
    "learners/test_gsmn.py",
    "evaluation/test_comparison.py",
    "formats/test_record.py",
    "formats/test_garbage.py",
    "learners/test_ibmap.py",
    "learners/test_csgs.py",
    "learners/test_cspc.py",
    "learners/test_oracle.py",
    "studies/paper/test_running.py",
    "learners/test_cluster.py",
    "cli/test_determinism.py",
    "learners/test_stopping.py",
    "learners/test_ggs.py",
    "studies/paper/test_main.py",
    "weights/test_threads.py",
    "data/test_read.py",
    "test_documents.py",
)


def pytest_collection_modifyitems(items):
    place = {HERE / name: number for number, name in enumerate(FIRST)}
    assert all(path.exists() for path in place)
    items.sort(key=lambda item: place.get(item.path, len(FIRST)))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep modules and tests for good: Python would go through all of them again and again for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
