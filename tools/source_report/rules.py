"""What is counted: lines, loops, parsers, constants and other things, each by a rule."""

import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from source_report.tree import Function, Module, Package, assignments

LAYOUT = {
    *(tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
Loop = ast.While | ast.For | ast.AsyncFor


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
