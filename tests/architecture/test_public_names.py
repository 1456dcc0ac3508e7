"""The public surface: one sorted list, every name loads, and type checkers see the same names."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import unless

SOURCE = Path(unless.__file__)


def names_seen_by_type_checkers() -> set[str]:
    tree = ast.parse(SOURCE.read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in guarded.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name for node in imports for alias in node.names}


def test_the_list_is_sorted_and_complete() -> None:
    assert list(unless.__all__) == sorted(unless.__all__)
    assert set(unless.__all__) == names_seen_by_type_checkers()


@pytest.mark.parametrize("name", unless.__all__)
def test_every_public_name_loads_and_says_what_it_is(name: str) -> None:
    value = getattr(unless, name)
    assert value.__doc__
    assert name in dir(unless)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        unless.nonsense  # noqa: B018


def test_learn_show_and_query_load_only_what_they_need(tmp_path: Path) -> None:
    table, model = tmp_path / "t.csv", tmp_path / "m.unless"
    table.write_text("a,b,c\n" + "0,0,1\n1,1,0\n0,1,1\n" * 30)
    idle = {"scipy.special", "scipy.sparse", "scipy.optimize", "scipy.stats", "networkx", "joblib", "pandas"}
    idle |= {"urllib.request", "tqdm", "narwhals", "matplotlib", "sklearn"}
    for words, more in (
        (["learn", table, "-o", model], {"rich"}),
        # Only kernels load scipy, with numba.
        (["show", model], {"rich", "numba", "scipy", "duckdb"}),
        (["fit", model, table, "-o", tmp_path / "n.unless"], {"rich"}),
        (["query", tmp_path / "n.unless", "a"], {"duckdb"}),
    ):
        code = (
            f"import sys\nfrom unless.cli import main\ntry:\n    main({[str(word) for word in words]!r})\n"
            "except SystemExit as done:\n    assert not done.code\n"
            f"print(sorted({idle | more!r} & set(sys.modules)), file=sys.stderr)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stderr.splitlines()[-1] == "[]", words


def test_importing_unless_loads_nothing_heavy() -> None:
    heavy = "{'numpy', 'scipy', 'numba', 'duckdb', 'networkx', 'click', 'pandas', 'sklearn'}"
    code = f"import sys, unless; print(sorted({heavy} & set(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "[]"
