"""Messages of the package, read from its source: what errors and the log say.

A template has an ellipsis where a value stands.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import eventhub_checkpoints

PACKAGE = Path(eventhub_checkpoints.__file__).parent
VALUE = "\N{HORIZONTAL ELLIPSIS}"
LOG = "log"
LOGGED = {"warning", "error", "exception", "critical", "_warn", "warn_once"}
FIELD = re.compile(r"%[-\d.]*[a-zA-Z]")
MOST = 64
"""Combinations of what a message may be made of."""
DEPTH = 3
"""Names that stand for names."""

Names = Mapping[str, Sequence[ast.expr]]


@dataclass(frozen=True)
class Message:
    """Template of a message.

    Attributes:
        kind: name of the error's class, or `log`.
        text: the template.
        place: file and line.
    """

    kind: str
    text: str
    place: str

    @property
    def words(self) -> int:
        """Number of its own words, without values."""
        return len(re.findall(r"[A-Za-z]{2,}", self.text))


@cache
def modules() -> Mapping[str, ast.Module]:
    """Parse each module that is edited: of derived ones, what they derive from."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text()
        if "_sync" not in path.parts or source.startswith("# Not derived: "):
            found[path.relative_to(PACKAGE).as_posix()] = ast.parse(source)
    return found


def assigned(tree: ast.AST) -> dict[str, list[ast.expr]]:
    """Return the expressions that are assigned to each name."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return found


@cache
def constants() -> Names:
    """Return the constants of all modules, which others import."""
    found: dict[str, list[ast.expr]] = {}
    for tree in modules().values():
        for name, values in assigned(ast.Module(tree.body, [])).items():
            if name.isupper():
                found.setdefault(name, []).extend(values)
    return found


def templates(node: ast.expr, names: Names, depth: int = DEPTH) -> list[str]:
    """Return what an expression may be; what is not known is a value."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=parts):
            return joined([templates(part, names, depth) for part in parts])
        case ast.FormattedValue(value=value):
            return templates(value, names, depth)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return joined([templates(left, names, depth), templates(right, names, depth)])
        case ast.Call(func=ast.Name(id="as_typed"), args=[words]):
            return joined([["ehcp "], templates(words, names, depth)])
        case ast.IfExp(body=body, orelse=orelse):
            return [*templates(body, names, depth), *templates(orelse, names, depth)]
        case ast.Name(id=name) if depth:
            values = names.get(name, [])
            return [t for each in values for t in templates(each, names, depth - 1)] or [VALUE]
        case ast.Subscript(value=ast.Name(id=name)) if depth and name.isupper():
            dicts = [each for each in names.get(name, []) if isinstance(each, ast.Dict)]
            values = [value for each in dicts for value in each.values]
            return [t for each in values for t in templates(each, names, depth - 1)] or [VALUE]
    return [VALUE]


def joined(parts: Sequence[Sequence[str]]) -> list[str]:
    """Return combinations of parts, and not all if there are very many."""
    found = [""]
    for choices in parts:
        found = [text + choice for text in found for choice in dict.fromkeys(choices)][:MOST]
    return found


def kind_of(node: ast.AST) -> tuple[str, Sequence[ast.expr]]:
    """Return which error a piece of code makes or names, and from what; `log` for a warning."""
    match node:
        case ast.Call(func=ast.Attribute(attr=attr), args=args) if attr in LOGGED:
            return LOG, args[:1]
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super"))), args=args):
            return "", args
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args):
            return (name, args) if name.endswith("Error") else ("", [])
        # Of tables of what servers answer.
        case ast.Tuple(elts=[ast.Name(id=name), text]) if name.endswith("Error"):
            return name, [text]
    return "", []


def _of_class(path: str, kind: ast.ClassDef, names: Names) -> Iterator[Message]:
    """What a class of errors says by itself."""
    for node in ast.walk(kind):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call(), attr="__init__"), args=args):
                for text in (text for argument in args for text in templates(argument, names)):
                    yield Message(kind.name, text, f"{path}:{node.lineno}")


@cache
def messages() -> Sequence[Message]:
    """Return the templates of all errors of this package, and of what is logged as a warning."""
    found: list[Message] = []
    for path, tree in modules().items():
        names = {**constants(), **assigned(tree)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name.endswith("Error"):
                found += _of_class(path, node, names)
            kind, arguments = kind_of(node)
            if not kind:
                continue
            for text in (text for each in arguments for text in templates(each, names)):
                shown = FIELD.sub(VALUE, text) if kind == LOG else text
                found.append(Message(kind, shown, f"{path}:{getattr(node, 'lineno', 0)}"))
    return found


@cache
def texts() -> Sequence[str]:
    """Return all strings of the package, as templates, with those of `messages`."""
    found = [message.text for message in messages()]
    for tree in modules().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
                found += [FIELD.sub(VALUE, text) for text in templates(node, {})]
    return found


@cache
def kinds_of_errors() -> set[str]:
    """Return the names of all classes of errors that derive from this package's own."""
    bases = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for tree in modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    found = {"CheckpointStoreError"}
    while more := {name for name, above in bases.items() if above & found} - found:
        found |= more
    return found
