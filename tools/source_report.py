"""Count in a source tree what is decided, parsed, named or held in more than one place.

    python tools/source_report.py                  of this checkout
    python tools/source_report.py --at PATH        of another checkout, to compare the two
    python tools/source_report.py --where          with the places of everything that is counted

The tree is read and never imported. Files in `_sync` that are derived repeat their source in
`_async`: their lines are counted apart, and nothing else in them is counted.
"""

import argparse
import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import NamedTuple

PACKAGE = "eventhub_checkpoints"
DERIVED = "# Derived from "
BASE = "BaseCheckpointStore"
SHARED_NAMES = ("Position", "Target", "Plan", "Ownership", "Group")
"""Names that a type of one room has, and a type with another meaning in another room."""

LAYOUT = {
    *(tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.While | ast.For | ast.AsyncFor


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


class Lines(NamedTuple):
    """Lines of some files; blank lines are not counted."""

    files: int
    code: int
    docstrings: int
    comments: int


NO_LINES = Lines(0, 0, 0, 0)


def is_text(node: ast.AST) -> bool:
    """Return whether a node is a string."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def lines_of(module: Module) -> Lines:
    """Count the lines of one file; a line with code and a comment is code."""
    docstrings: set[int] = set()
    for node in ast.walk(module.tree):
        # A string that is a statement: a docstring, also that of an attribute.
        if isinstance(node, ast.Expr) and is_text(node.value):
            docstrings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code: set[int] = set()
    comments: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type not in LAYOUT:
            kind = comments if token.type == tokenize.COMMENT else code
            kind.update(range(token.start[0], token.end[0] + 1))
    return Lines(1, len(code - docstrings), len(docstrings), len(comments - code))


def lines_by_room(package: Package) -> dict[str, Lines]:
    """Sum up the lines of each room, and of all derived files."""
    found: dict[str, list[Lines]] = defaultdict(list)
    for module in package.all:
        room = "(derived)" if module.is_derived else module.room
        found[room].append(lines_of(module))
    rooms = {room: total(found[room]) for room in sorted(found)}
    derived = rooms.pop("(derived)", NO_LINES)
    return {**rooms, "together": total(rooms.values()), "derived, beside these": derived}


def total(lines: Iterable[Lines]) -> Lines:
    """Add up lines."""
    return Lines(*map(sum, zip(NO_LINES, *lines, strict=True)))


def private_names(package: Package, linearization: Iterable[str]) -> set[str]:
    """Return the names with one underscore that some classes define or assign to `self`."""
    found: set[str] = set()
    for each in linearization:
        module, colon, name = each.partition(":")
        if colon:
            found.update(names_of(package.by_name[module].classes[name]))
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


def names_of(node: ast.ClassDef) -> Iterator[str]:
    """Yield the attributes that a class defines, and those that its methods assign to `self`."""
    for child in node.body:
        if isinstance(child, Function):
            yield child.name
        elif isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
            yield child.target.id
    for target, _ in assignments(node):
        yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))
    for below in ast.walk(node):
        if isinstance(below, ast.Attribute) and isinstance(below.ctx, ast.Store):
            yield from (below.attr,) if ast.unparse(below.value) == "self" else ()


def within(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below one, without those of functions and classes inside."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.ClassDef | ast.Lambda):
            yield child
            yield from within(child)


def called(node: ast.AST) -> str:
    """Return the last part of a called function's name; `""` if the node is no call."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def texts_in(call: ast.AST) -> set[str]:
    """Return the strings among the arguments of a call."""
    arguments = call.args if isinstance(call, ast.Call) else []
    return {
        argument.value
        for argument in arguments
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


ATTEMPT = re.compile(r"(?:^|_)(?:attempts?|retries|tries|failures)$")


def spaces_retries(node: ast.AST) -> bool:
    """Return whether a node calls a function `pause` or `backoff`, which space retries."""
    is_one = called(node).lstrip("_") in ("pause", "backoff")
    return is_one and not ast.unparse(node).startswith("signal.")


def is_retry(loop: ast.AST) -> bool:
    """Return whether a loop repeats what failed.

    It spaces attempts, or its head or a sum in it counts them and it handles a failure or goes on.
    """
    if not isinstance(loop, Loop):
        return False
    body = list(within(loop))
    heads = [loop.test] if isinstance(loop, ast.While) else [loop.target]
    sums = [node.target for node in body if isinstance(node, ast.AugAssign)]
    counts = any(ATTEMPT.search(name) for node in [*heads, *sums] for name in plain_names(node))
    handles = any(isinstance(node, ast.Try | ast.Continue) for node in body)
    return any(map(spaces_retries, body)) or (counts and handles)


def plain_names(node: ast.AST) -> Iterator[str]:
    """Yield the names and attributes in an expression, in lower case."""
    for child in ast.walk(node):
        if isinstance(child, ast.Name | ast.Attribute):
            yield (child.id if isinstance(child, ast.Name) else child.attr).lower()


def retry_loops(package: Package) -> Iterator[str]:
    """Yield the functions with a loop that retries, once for each loop."""
    for module in package.modules:
        for name, node in module.functions:
            yield from (name for child in within(node) if is_retry(child))


def spaces(body: list[ast.AST]) -> bool:
    """Return whether a function spaces retries, in a loop of its own or of its callers."""
    return any(map(spaces_retries, body))


TIME_CALLS = {"fromisoformat", "strptime", "parsedate", "parsedate_to_datetime"}
URL_CALLS = {"urlsplit", "urlparse", "make_url"}
SPLITS = {"split", "rsplit", "partition", "rpartition"}


def parses_time(body: list[ast.AST]) -> bool:
    """Return whether a function parses a time: it calls one of `TIME_CALLS`."""
    return any(called(node) in TIME_CALLS for node in body)


def parses_url(body: list[ast.AST]) -> bool:
    """Return whether a function parses a URL: it calls one of `URL_CALLS`, or splits at `://`."""
    return any(
        called(node) in URL_CALLS or (called(node) in SPLITS and "://" in texts_in(node))
        for node in body
    )


def parses_connection_string(body: list[ast.AST]) -> bool:
    """Return whether a function parses a connection string.

    It calls `parse_connection_string` of azure-core, or splits at `;` and at `=`.
    """
    splits = [node for node in body if called(node) in SPLITS]
    separators = set(chain.from_iterable(map(texts_in, splits)))
    return {";", "="} <= separators or any(is_connection_call(node) for node in body)


def is_connection_call(node: ast.AST) -> bool:
    """Return whether a node calls azure-core's parser; a method may have the same name."""
    is_name = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return is_name and called(node) == "parse_connection_string"


UNITS = ({"s", "ms"}, {"s", "m"}, {"s", "h"}, {"seconds", "minutes"})


def is_duration_grammar(name: str, value: ast.expr) -> bool:
    """Return whether a constant spells durations: a pattern so named, or a table of units."""
    if isinstance(value, ast.Dict):
        # Keys of the dict, and those of `**dict.fromkeys(("s", "seconds"), 1.0)` in it.
        spread = [each for key, each in zip(value.keys, value.values, strict=True) if key is None]
        words = [*(key for key in value.keys if key), *chain(*map(ast.walk, spread))]
        keys = {word.value for word in words if isinstance(word, ast.Constant)}
        return any(units <= keys for units in UNITS)
    return "DURATION" in name and any(is_text(node) for node in ast.walk(value))


def parses_duration(module: Module) -> Callable[[list[ast.AST]], bool]:
    """Return the rule for a module: a function parses durations if it uses such a constant."""
    grammars = {
        name for name, value in module.constants.items() if is_duration_grammar(name, value)
    }
    return lambda body: any(isinstance(node, ast.Name) and node.id in grammars for node in body)


def functions_where(
    package: Package, rule: Callable[[Module], Callable[[list[ast.AST]], bool]]
) -> list[str]:
    """Return the functions to which a rule applies."""
    return [
        name
        for module in package.modules
        for name, node in module.functions
        if rule(module)(list(within(node)))
    ]


def types_named(package: Package, names: Iterable[str]) -> list[str]:
    """Return the classes with one of the names."""
    return [
        f"{module.name}:{name}"
        for name in names
        for module in package.modules
        if name in module.classes
    ]


SYNONYMS = {
    **dict.fromkeys(("max", "maximum", "most", "longest", "limit", "largest"), "most"),
    **dict.fromkeys(("min", "minimum", "least", "shortest", "smallest"), "least"),
    **dict.fromkeys(("seconds", "timeout", "wait", "pause", "patience"), "seconds"),
    **dict.fromkeys(("attempts", "tries", "retries"), "attempts"),
    "default": "",
}
"""Words of names that mean the same, where the rest of the names is equal."""


def meaning(name: str) -> str:
    """Return the words of a constant's name, in any order and without synonyms."""
    words = {SYNONYMS.get(word, word) for word in name.lower().strip("_").split("_")}
    return " ".join(sorted(words - {""}))


def scalar(value: ast.expr) -> str | None:
    """Return the source of a value that is a number, a text, a time, or arithmetic of numbers."""
    parts = [node for node in ast.walk(value) if isinstance(node, ast.expr)]
    is_number = all(isinstance(node, ast.Constant | ast.BinOp | ast.UnaryOp) for node in parts)
    is_time = called(value) in ("datetime", "timedelta", "EventPosition", "from_sequence_number")
    return ast.unparse(value) if is_number or is_time else None


Values = dict[str, list[str]]
"""The modules of each value."""


def constants(package: Package) -> tuple[dict[str, Values], dict[str, Values]]:
    """Return the names with several values, and the meanings of several names and values.

    In the second, a value is shown with its name.
    """
    by_name: dict[str, Values] = defaultdict(lambda: defaultdict(list))
    by_meaning: dict[str, Values] = defaultdict(lambda: defaultdict(list))
    for module in package.modules:
        for name, expression in module.constants.items():
            value = scalar(expression)
            if value is not None:
                by_name[name.lstrip("_")][value].append(module.name)
                by_meaning[meaning(name)][f"{name} = {value}"].append(module.name)
    return (
        {name: values for name, values in by_name.items() if len(values) > 1},
        {
            words: values
            for words, values in by_meaning.items()
            if len({each.partition(" = ")[0].lstrip("_") for each in values}) > 1
            and len({each.partition(" = ")[2] for each in values}) > 1
        },
    )


def uses_of_any(package: Package, room: str) -> Counter[str]:
    """Count the uses of `Any` in each module of a room."""
    return Counter(
        module.name
        for module in package.modules
        if module.room == room
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Name) and node.id == "Any"
    )


def raises_lines(package: Package) -> Counter[str]:
    """Count the lines of `Raises:` sections in docstrings, headings included, by room."""
    found: Counter[str] = Counter()
    for module in package.modules:
        for node in ast.walk(module.tree):
            if isinstance(node, Function | ast.ClassDef | ast.Module):
                text = ast.get_docstring(node) or ""
                for section in re.findall(r"(?m)^Raises:\n(?:[ \t]+.*(?:\n|\Z))+", text):
                    found[module.room] += len(section.splitlines())
    return found


class Row(NamedTuple):
    """One line of the report: what is counted, how often, and the places."""

    what: str
    number: int
    places: list[str]


def rows(package: Package) -> Iterator[Row]:
    """Count everything but the lines."""
    stores = package.stores()
    for name, order in sorted(stores.items()):
        yield Row(f"classes in the MRO of {name}", len(order), order)
    private = sorted(private_names(package, stores.get(BASE, ())))
    yield Row(f"private names of {BASE}", len(private), private)
    loops = list(retry_loops(package))
    yield Row("retry loops", len(loops), loops)
    for what, rule in (
        ("functions that space retries", lambda module: spaces),
        ("parsers of times", lambda module: parses_time),
        ("parsers of durations", parses_duration),
        ("parsers of URLs", lambda module: parses_url),
        ("parsers of connection strings", lambda module: parses_connection_string),
    ):
        places = functions_where(package, rule)
        yield Row(what, len(places), places)
    named = types_named(package, SHARED_NAMES)
    yield Row(f"types called {', '.join(SHARED_NAMES)}", len(named), named)
    for what, table in zip(
        ("constants of one name with several values", "constants of one meaning with two values"),
        constants(package),
        strict=True,
    ):
        yield Row(what, len(table), [f"{name}: {shown(table[name])}" for name in sorted(table)])
    for what, counts in (
        ("uses of Any in operations", uses_of_any(package, "operations")),
        ("lines of Raises: sections", raises_lines(package)),
    ):
        yield Row(what, counts.total(), [f"{name}: {number}" for name, number in counts.items()])
    for what, at_run_time in (("at run time", True), ("drawn, lazy and for types too", False)):
        circles = package.circles(at_run_time=at_run_time)
        yield Row(f"circles of imports {what}", len(circles), [", ".join(each) for each in circles])


def shown(values: Values) -> str:
    """Return values with their modules."""
    return "; ".join(f"{value} ({', '.join(modules)})" for value, modules in values.items())


def report(package: Package, *, with_places: bool) -> Iterator[str]:
    """Yield the lines of the report."""
    yield f"{'lines by room':<24}{'files':>8}{'code':>8}{'docs':>8}{'comments':>10}"
    for room, lines in lines_by_room(package).items():
        yield f"{room:<24}{lines.files:>8}{lines.code:>8}{lines.docstrings:>8}{lines.comments:>10}"
    yield ""
    for row in rows(package):
        yield f"{row.number:>6}  {row.what}"
        if with_places:
            yield from (f"{'':10}{place}" for place in row.places)


def main() -> None:
    """Print the report of a checkout."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    here = Path(__file__).resolve().parent.parent
    parser.add_argument("--at", type=Path, default=here, help="the checkout; this one by default")
    parser.add_argument("--where", action="store_true", help="print places, too")
    options = parser.parse_args()
    for line in report(Package(options.at), with_places=options.where):
        print(line)


if __name__ == "__main__":
    main()
