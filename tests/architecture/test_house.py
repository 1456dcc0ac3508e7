"""Rules of the house that no linter knows, each with its reason."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "unless"
# Run from the repository, not installed.
STUDIES = [ROOT / "benchmarks", ROOT / "studies"]
MODULES = sorted(path for folder in (PACKAGE, *STUDIES) for path in folder.rglob("*.py"))
ROOMS = [*sorted(path for path in PACKAGE.iterdir() if (path / "__init__.py").exists()), *STUDIES]


def functions(module: Path) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.FunctionDef))


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("room", ROOMS, ids=relative)
def test_a_room_says_what_it_is_for_and_only_re_exports(room: Path) -> None:
    body = ast.parse((room / "__init__.py").read_text()).body
    assert isinstance(body[0], ast.Expr)
    assert all(isinstance(node, ast.Import | ast.ImportFrom | ast.Assign) for node in body[1:])


def test_every_room_is_in_the_contract_and_on_the_map() -> None:
    contract = (ROOT / "pyproject.toml").read_text()
    map_of_rooms = (ROOT / "ARCHITECTURE.md").read_text()
    for room in ROOMS:
        assert f'"{room.name}"' in contract
        assert f"`{room.name}`" in map_of_rooms


def test_what_threads_could_change_is_left_to_kernels() -> None:
    # BLAS and LAPACK share long sums among their threads, so that last digits depend on how many there are.
    allowed = {
        # Sums of whole numbers are exact in any order.
        "evaluation/comparison.py", "structures/canonical.py", "structures/graph.py",
        # Ten gates at most, too few for threads to share.
        "datasets/synthetic.py",
        # Products with sparse matrices are loops of scipy's own, without BLAS and in one thread.
        "weights/conditional.py",
    }  # fmt: skip
    forbidden = re.compile(
        r"linalg\.(?!LinAlgError)|np\.(?:dot|vdot|inner|matmul|tensordot|einsum|cov)\b|\.dot\("
    )
    found = set()
    for module in MODULES:
        text = module.read_text()
        # `make check` has a space behind the operator, and none behind the sign of a decorator.
        multiplied = re.search("@[ =\n]", text) and any(
            isinstance(node, ast.MatMult) for node in ast.walk(ast.parse(text))
        )
        if multiplied or forbidden.search(text):
            found.add(relative(module).removeprefix("src/unless/"))
    # Neither benchmarks nor the study of truth promise the same last digits.
    promised = {name for name in found if not name.startswith(("benchmarks/", "studies/truth/"))}
    assert promised == allowed


def test_no_file_names_a_machine_or_a_registry() -> None:
    # A clone must work everywhere, and what it installs from is the user's choice.
    private = re.compile(r"/(?:work|root|home)/|python(?=hosted)|registry\.(?=npm)|\bpypi\.(?=org)")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    texts = {name: (ROOT / name).read_text(errors="replace") for name in listed if (ROOT / name).is_file()}
    found = {name: match.group() for name, text in texts.items() if (match := private.search(text))}
    assert found == {}


def test_nothing_is_pickled() -> None:
    # A file that can run code when opened is not a file to mail to a colleague.
    for module in MODULES:
        assert not re.search(r"\bimport pickle\b|allow_pickle=True", module.read_text()), relative(module)


def is_kernel(function: ast.FunctionDef, *kinds: str) -> bool:
    return any(ast.unparse(node).partition("(")[0] in kinds for node in function.decorator_list)


def test_what_only_kernels_call_is_never_called_from_python() -> None:
    # There is no way in from Python, whose call would end the process without a word.
    inner = {
        (module.stem, function.name)
        for module in (PACKAGE / "kernels").rglob("*.py")
        for function in functions(module)
        if is_kernel(function, "helper", "inlined")
    }
    assert inner
    found = set()
    for module in [*MODULES, *(ROOT / "tests").rglob("*.py")]:
        text = module.read_text()
        if "from unless.kernels" not in text:
            continue
        nodes = list(ast.walk(ast.parse(text)))
        names = {
            name for home, name in inner if PACKAGE / "kernels" in module.parents and module.stem == home
        }
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("unless.kernels."):
                home = (node.module or "").rpartition(".")[2]
                names |= {one.asname or one.name for one in node.names if (home, one.name) in inner}
        compiled = {
            id(node)
            for function in nodes
            if isinstance(function, ast.FunctionDef)
            and is_kernel(function, "compiled", "helper", "inlined", "reordered", "numba.njit")
            for node in ast.walk(function)
        }
        found |= {
            f"{relative(module)}:{node.lineno} {node.id}"
            for node in nodes
            if isinstance(node, ast.Name) and node.id in names and id(node) not in compiled
        }
    assert found == set()


def test_what_child_processes_import_loads_no_numpy() -> None:
    # They open hostile files in some 30 ms and with little memory, in which numpy has no room.
    names = "excel", "labelled", "unpacking"
    code = "import sys; " + "; ".join(f"import unless.data.sources.{name}" for name in names)
    code += "; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_only_arrays_with_an_owner_go_without_reference_counts() -> None:
    # What a call returns has no other owner: it would be freed while the kernel still reads it.
    passed = [
        (relative(module), ast.unparse(part))
        for module in sorted((PACKAGE / "kernels").glob("*.py"))
        for function in functions(module)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "without_refcount"
        for argument in call.args
        for part in (argument.elts if isinstance(argument, ast.Tuple) else [argument])
    ]
    assert passed
    for where, part in passed:
        owner = ast.parse(part, mode="eval").body
        while isinstance(owner, ast.Subscript | ast.Attribute):
            owner = owner.value
        assert isinstance(owner, ast.Name), f"{where}: {part}"
