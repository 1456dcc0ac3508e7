"""How large the package is, and how tangled: `make size`."""

import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "unless"
WORDS = Path(__file__).with_name("words.txt")
STRUCTURES = {"Graph", "CanonicalModel", "FeatureSet", "LabelledGraph", "LogLinearModel"}
# Where a structure may be told by its class.
AT_HOME = ("structures", "formats")


def modules() -> dict[str, Path]:
    """Return all modules of the package by their dotted names."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def docstring_lines(tree: ast.Module) -> set[int]:
    """Return the numbers of the lines that docstrings take."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            text = first.value if isinstance(first, ast.Expr) else None
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                lines.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return lines


def code_lines(text: str) -> set[int]:
    """Return the numbers of the lines with code: no blanks, no comments (docstrings are still in)."""
    idle = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in idle and token.type != tokenize.ENDMARKER:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines


def imports(name: str, tree: ast.Module, known: set[str]) -> Iterator[str]:
    """Give the modules of the package that a module imports, inside functions too, but not for types only."""
    for node in _without_type_checking(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module or name


def _without_type_checking(node: ast.AST) -> Iterator[ast.AST]:
    left = [node]
    while left:
        for child in ast.iter_child_nodes(left.pop()):
            if not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
                yield child
                left.append(child)


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected parts of a graph with more than one node (Tarjan 1972)."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        numbers[node] = lowest[node] = len(numbers)
        stack.append(node)
        for after in sorted(graph[node]):
            if after not in numbers:
                visit(after)
                lowest[node] = min(lowest[node], lowest[after])
            elif after in stack:
                lowest[node] = min(lowest[node], numbers[after])
        if lowest[node] == numbers[node]:
            part: list[str] = []
            while not part or part[-1] != node:
                part.append(stack.pop())
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(graph):
        if node not in numbers:
            visit(node)
    return found


def identifiers(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Give the names of classes, functions, parameters and attributes that the nodes of a module define."""
    for node in nodes:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def parts_of(identifier: str) -> list[str]:
    """Cut an identifier into its words."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", identifier)]


def uses_forbidden_word(identifier: str) -> bool:
    """Tell whether an identifier is, or contains, a word of words.txt."""
    bare = identifier.strip("_")
    if bare in _EXACT or bare in PARTS:
        return True
    return bool({*parts_of(bare)} & PARTS)


_LINES = [line.strip() for line in WORDS.read_text().splitlines() if line.strip()[:1] not in ("", "#")]
_EXACT = {line[1:] for line in _LINES if line.startswith("=")}
PARTS = {line for line in _LINES if not line.startswith("=")}


def count_lines() -> dict[str, object]:
    """Count the lines with code and those of docstrings."""
    n_code = n_docs = 0
    for path in modules().values():
        text = path.read_text(encoding="utf-8")
        docs = docstring_lines(ast.parse(text))
        n_docs += len(docs)
        n_code += len(code_lines(text) - docs)
    return {"code lines": n_code, "docstring lines": n_docs}


def measure() -> dict[str, object]:
    """Measure all but lines, which nothing limits."""
    known = modules()
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in known.items()}
    # Walked once: it takes longer than what is looked for.
    nodes = {name: list(ast.walk(tree)) for name, tree in trees.items()}
    graph = {name: set(imports(name, trees[name], set(known))) - {name} for name in known}
    importers: dict[str, set[str]] = defaultdict(set)
    for name, wanted in graph.items():
        for one in wanted:
            importers[one].add(name)
    plain = [name for name, path in known.items() if path.name != "__init__.py"]
    classes = Counter(node.name for some in nodes.values() for node in some if isinstance(node, ast.ClassDef))
    by_class = [
        name
        for name, some in nodes.items()
        if name.split(".")[1:2] not in ([room] for room in AT_HOME)
        and any(_tells_a_structure(node) for node in some)
    ]
    words = {
        f"{name}: {one}"
        for name, some in nodes.items()
        for one in {*identifiers(some), name.rsplit(".", 1)[-1]}
        if uses_forbidden_word(one)
    }
    return {
        ".py files": len(known),
        "modules with one importer": sorted(one for one in plain if len(importers[one]) == 1),
        "class names used twice": sorted(name for name, n in classes.items() if n > 1),
        "files with isinstance on structures": sorted(by_class),
        "import cycles": cycles(graph),
        "forbidden words": sorted(words),
    }


def _tells_a_structure(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return False
    if node.func.id not in ("isinstance", "issubclass"):
        return False
    if len(node.args) < 2:
        return False
    return bool(STRUCTURES & set(re.findall(r"\w+", ast.unparse(node.args[1]))))


if __name__ == "__main__":
    import sys

    for what, found in {**count_lines(), **measure()}.items():
        listed = found if isinstance(found, list) else None
        print(f"{what:<40} {len(listed) if listed is not None else found:>8,}")
        if listed is not None and "-v" in sys.argv:
            for one in listed:
                print(f"    {one if isinstance(one, str) else ', '.join(one)}")
