"""What a tree of sources says about itself: who imports whom, what it names, what it needs."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

PACKAGE = "nearfuture"
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def parsed(source: Path) -> dict[str, ast.Module]:
    """Every file of a package as a tree, by its path below the package."""
    return {
        path.relative_to(source).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(source.rglob("*.py"))
    }


@cache
def imported(tree: ast.AST, file: str) -> tuple[tuple[str, bool], ...]:
    """Each imported dotted name, and whether it is imported inside a function."""
    package = [PACKAGE, *file.split("/")[:-1]]
    found = []
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, inside = waiting.pop()
        if isinstance(node, ast.Import):
            found += [(alias.name, inside) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = [*base, *([node.module] if node.module else [])]
            found += [(".".join([*module, alias.name]), inside) for alias in node.names]
        elif not isinstance(node, ast.expr):  # an expression imports nothing
            inside = inside or isinstance(node, _FUNCTIONS)
            waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
    return tuple(found)


def graph(source: Path) -> dict[str, set[str]]:
    """The files that each file imports, wherever and whenever it does.

    `from nearfuture.budget import Cost` is an import of `budget/__init__.py`; of
    `from nearfuture.budget import cost` it is one of `budget/cost.py`.
    """
    trees = parsed(source)
    edges: dict[str, set[str]] = {}
    for file, tree in trees.items():
        targets = (_file(name, trees) for name, _ in imported(tree, file))
        edges[file] = {target for target in targets if target} - {file, "__init__.py"}
    return edges


def _file(name: str, trees: Mapping[str, ast.Module]) -> str | None:
    """The file that a dotted name of the package lies in."""
    package, *parts = name.split(".")
    if package != PACKAGE:
        return None
    while parts:
        path = "/".join(parts)
        for file in (f"{path}.py", f"{path}/__init__.py"):
            if file in trees:
                return file
        parts.pop()
    return "__init__.py"


def cycles(source: Path) -> list[list[str]]:
    """The groups of files that import each other in a circle (Tarjan 1972)."""
    edges = graph(source)
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups = []

    def visit(file: str) -> None:
        number[file] = lowest[file] = len(number)
        stack.append(file)
        for target in sorted(edges[file]):
            if target not in number:
                visit(target)
                lowest[file] = min(lowest[file], lowest[target])
            elif target in stack:
                lowest[file] = min(lowest[file], number[target])
        if lowest[file] == number[file]:
            begin = stack.index(file)
            group = sorted(stack[begin:])
            del stack[begin:]
            if len(group) > 1:
                groups.append(group)

    for file in edges:
        if file not in number:
            visit(file)
    return sorted(groups)


def shared_class_names(source: Path) -> dict[str, list[str]]:
    """The public class names that more than one file defines, and the files."""
    files = defaultdict(list)
    for file, tree in parsed(source).items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files[node.name].append(file)
    return {name: found for name, found in sorted(files.items()) if len(found) > 1}
