"""Source tree of the package, which is read and never imported."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

PACKAGE = "eventhub_checkpoints"
DERIVED = "# Derived from "

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file of the package.

    Attributes:
        name: below the package, such as `stores.sql.url`; `""` is the package itself.
        text: the source.
        is_package: whether the file is an `__init__.py`.
    """

    name: str
    text: str
    is_package: bool

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def is_derived(self) -> bool:
        return self.text.startswith(DERIVED)

    @property
    def room(self) -> str:
        """The folder at the top of the package, or the root for a module beside the folders."""
        first, dot, _ = self.name.partition(".")
        return first if dot or (self.is_package and first) else "(root)"

    @cached_property
    def functions(self) -> list[tuple[str, Function]]:
        """Every function, by its qualified name."""
        return [
            (f"{self.name}:{name}", node)
            for name, node in definitions(self.tree)
            if isinstance(node, Function)
        ]

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        """The classes at the top of the module."""
        return {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}

    @cached_property
    def constants(self) -> dict[str, ast.expr]:
        """The constants of the module, and the expressions of their values."""
        return {
            target.id: value
            for target, value in assignments(self.tree)
            if isinstance(target, ast.Name) and re.fullmatch("_?[A-Z][A-Z0-9_]+", target.id)
        }


class Import(NamedTuple):
    """One name that a module imports from another of the package.

    Attributes:
        module: name of the imported module.
        name: what is imported of it; `""` is the module itself.
        alias: its name in the importing module.
        is_at_run_time: whether it happens when the module is imported.
    """

    module: str
    name: str
    alias: str
    is_at_run_time: bool


class Package:
    """The modules of one checkout."""

    def __init__(self, checkout: Path) -> None:
        root = checkout / "src" / PACKAGE
        if not root.is_dir():
            raise SystemExit(f"{checkout} is not a checkout: it has no src/{PACKAGE}")
        self.all = [read_module(root, path) for path in sorted(root.rglob("*.py"))]
        self.by_name = {module.name: module for module in self.all}
        self.modules = [module for module in self.all if not module.is_derived]

    @cached_property
    def imports(self) -> dict[str, list[Import]]:
        """What each module imports of the package."""
        return {module.name: list(self._imports(module)) for module in self.modules}

    def _imports(self, module: Module) -> Iterator[Import]:
        for node, is_at_run_time in import_statements(module.tree, True):
            for target, name, alias in imported(node, module):
                inner = f"{target}.{name}".strip(".")
                if inner in self.by_name:
                    yield Import(inner, "", alias, is_at_run_time)
                elif target in self.by_name:
                    yield Import(target, name, alias, is_at_run_time)

    def linearization(self, module: str, name: str) -> list[str]:
        """Return the method resolution order of a class.

        Classes of other packages are in it by name, without their own bases.
        """
        node = self.by_name[module].classes[name]
        bases = [self._class(module, ast.unparse(base).partition("[")[0]) for base in node.bases]
        orders = [self.linearization(*base.split(":")) if ":" in base else [base] for base in bases]
        return [f"{module}:{name}", *merged([*orders, bases])]

    def _class(self, module: str, name: str) -> str:
        """Return a class as `module:name`, or its name alone if it is of another package."""
        first, _, rest = name.partition(".")
        if not rest and first in self.by_name[module].classes:
            return f"{module}:{name}"
        for each in self.imports.get(module, ()):
            if each.alias == first:
                return self._class(each.module, rest or each.name)
        return name

    def stores(self) -> dict[str, list[str]]:
        """Return the linearization of every class whose name says that it is a store."""
        return {
            name: self.linearization(module.name, name)
            for module in self.modules
            for name in module.classes
            if name.endswith("Store") and not name.startswith("_")
        }

    def circles(self, *, at_run_time: bool) -> list[list[str]]:
        """Return the groups of modules that import one another in a circle."""
        graph = {
            module.name: {
                each.module
                for each in self.imports[module.name]
                if each.module != module.name and (each.is_at_run_time or not at_run_time)
            }
            for module in self.modules
        }
        return components(graph)


def read_module(root: Path, path: Path) -> Module:
    """Read one file below the folder of the package."""
    parts = path.relative_to(root).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    name = ".".join(parts[:-1] if is_package else parts)
    return Module(name, path.read_text(encoding="utf-8"), is_package)


def definitions(node: ast.AST, above: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield every class and function below a node, by its qualified name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef):
            yield f"{above}{child.name}", child
            yield from definitions(child, f"{above}{child.name}.")
        else:
            yield from definitions(child, above)


def assignments(node: ast.Module | ast.ClassDef) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield target and value of each assignment directly below a module or class."""
    for child in node.body:
        if isinstance(child, ast.Assign):
            yield from ((target, child.value) for target in child.targets)
        elif isinstance(child, ast.AnnAssign) and child.value is not None:
            yield child.target, child.value


def import_statements(node: ast.AST, at_run_time: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Yield every import statement, and whether it runs when its module is imported."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, at_run_time
        is_later = isinstance(child, Function | ast.Lambda) or (
            isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        )
        yield from import_statements(child, at_run_time and not is_later)


def imported(node: ast.AST, module: Module) -> Iterator[tuple[str, str, str]]:
    """Yield module, name and alias of what a statement imports of the package."""
    if isinstance(node, ast.Import):
        names = [(alias.name, "", alias.asname or alias.name) for alias in node.names]
    else:
        assert isinstance(node, ast.ImportFrom)
        parts = [PACKAGE, *filter(None, module.name.split("."))]
        above = parts[: len(parts) + module.is_package - node.level] if node.level else []
        target = ".".join([*above, *filter(None, [node.module])])
        names = [(target, alias.name, alias.asname or alias.name) for alias in node.names]
    for target, name, alias in names:
        if target.split(".")[0] == PACKAGE:
            yield target.removeprefix(PACKAGE).lstrip("."), name, alias


def merged(orders: Sequence[Sequence[str]]) -> list[str]:
    """Merge the orders of a class's bases.

    Source: https://docs.python.org/3/howto/mro.html, "The C3 Method Resolution Order".
    """
    left = [list(order) for order in orders if order]
    result: list[str] = []
    while left:
        tails = {name for order in left for name in order[1:]}
        heads = [order[0] for order in left if order[0] not in tails]
        if not heads:
            raise ValueError(f"no order of bases is consistent: {orders}")
        result.append(heads[0])
        left = [order for order in ([n for n in o if n != heads[0]] for o in left) if order]
    return result


def components(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the sets of nodes that reach one another, of two nodes and more."""
    reached = {node: reachable(graph, node) for node in graph}
    circles = {
        tuple(sorted(other for other in reached[node] if node in reached.get(other, ())))
        for node in graph
        if node in reached[node]
    }
    return [list(circle) for circle in sorted(circles)]


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """Return the nodes that can be reached from one in one step or more."""
    seen: set[str] = set()
    left = list(graph[start])
    while left:
        node = left.pop()
        if node not in seen:
            seen.add(node)
            left.extend(graph.get(node, ()))
    return seen
