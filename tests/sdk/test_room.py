"""What is private in azure-eventhub is used in one folder, and each name stands in one table."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import eventhub_checkpoints
from eventhub_checkpoints.sdk.private_names import PRIVATE_NAMES

ROOT = Path(eventhub_checkpoints.__file__).parent
ROOM = ROOT / "sdk"
OUTSIDE = [path for path in sorted(ROOT.rglob("*.py")) if ROOM not in path.parents]
INSIDE = sorted(ROOM.glob("*.py"))

TABLE = {private.name for private in PRIVATE_NAMES}

FRAMES = {
    *("f_back", "f_locals", "f_globals", "cr_frame", "cr_await", "gi_frame"),
    *("currentframe", "_getframe", "_current_frames"),
}
"""How a stack is walked."""

OTHERS = {
    "KafkaError": "codes of confluent-kafka, which documents them",
    "_asdict": "of named tuples",
    "_make": "of named tuples",
    "_fields": "of named tuples",
    "_replace": "of named tuples",
    "_exit": "of os",
    "_retry_connection": "of aiohttp, for the blob store",
    "_jvm": "of PySpark, for paths and listeners",
    "_jsparkSession": "of PySpark, for paths and listeners",
    "_inheriting": "of multiprocessing, for the conformance suite",
}
"""Private names outside of the room that are not azure-eventhub's: the name, or whose it is."""

READERS = {"getattr", "hasattr", "setattr", "delattr"}


def is_private(name: str) -> bool:
    # Names such as `_value_` are those that `enum` documents.
    return name.startswith("_") and not name.startswith("__") and not name.endswith("_")


def defined(tree: ast.AST) -> Iterator[str]:
    """Names that a module gives to attributes of its own objects."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                yield name
            case ast.ClassDef(body=body):
                for line in body:
                    targets = line.targets if isinstance(line, ast.Assign) else []
                    targets = [line.target] if isinstance(line, ast.AnnAssign) else targets
                    yield from (each.id for each in targets if isinstance(each, ast.Name))


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


OURS = {name for path in OUTSIDE for name in defined(parsed(path))}


PLAIN = {name for name in TABLE & OURS if not is_private(name)} | {"partition_context"}
"""Names in the table that objects of ours have, too, such as `close`."""


def read(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Line, owner and name of everything that is looked up on an object other than `self`."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=owner, attr=name):
                shown = ast.unparse(owner)
                if shown not in ("self", "cls", "super()"):
                    yield node.lineno, shown, name
            case ast.Call(
                func=ast.Name(id=function), args=[owner, ast.Constant(value=str(name)), *_]
            ):
                if function in READERS:
                    yield node.lineno, ast.unparse(owner), name


def intrusions(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Uses of what is private in the client; each with its line."""
    for line, owner, name in read(tree):
        if name in OTHERS or owner in OTHERS:
            continue
        if name in FRAMES:
            yield line, f"{owner}.{name} walks the stack"
        elif name in TABLE - PLAIN or (is_private(name) and name not in OURS):
            yield line, f"{owner}.{name}"
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), names=names):
                modules = [f"{module}.{alias.name}" for alias in names]
            case ast.ClassDef(bases=bases):
                for base in map(ast.unparse, bases):
                    if base.startswith("Official"):
                        yield node.lineno, f"inherits from {base}, and sees what it keeps"
                continue
            case _:
                continue
        for each in modules:
            private = [part for part in each.split(".") if is_private(part)]
            if (each.startswith("azure.") and private) or each.endswith("private_names.Internal"):
                yield node.lineno, f"imports {each}"


def test_only_the_room_uses_what_is_private_in_the_client() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in OUTSIDE
        for line, what in intrusions(parsed(path))
    ]
    assert not found, "use a function of sdk/ instead:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "code",
    [
        "client._create_consumer('g', '0', 1, print)",
        "self._link._session.channel",
        "link.remote_max_message_size",
        "link.current_link_credit -= 1",
        "consumer._renamed_since",
        "getattr(loop, '_running', True)",
        "frame.f_back",
        "sys._current_frames()",
        "inspect.currentframe()",
        "task.get_coro().cr_frame",
        "from azure.eventhub._eventprocessor.event_processor import EventProcessor",
        "import azure.eventhub._pyamqp.link",
        "from eventhub_checkpoints.sdk.private_names import Internal",
        "class Mine(OfficialLink): pass",
    ],
)
def test_an_intrusion_is_found(code: str) -> None:
    assert len([*intrusions(ast.parse(code))]) == 1


@pytest.mark.parametrize(
    "code", ["self._session", "values._replace(a=1)", "KafkaError._TIMED_OUT", "flow.link_credit"]
)
def test_what_is_ours_or_public_is_none(code: str) -> None:
    assert [*intrusions(ast.parse(code))] == []


def test_the_exceptions_are_needed() -> None:
    looked_up = [pair for path in OUTSIDE for _, *pair in read(parsed(path))]
    used = {part for pair in looked_up for part in pair}
    assert used >= OTHERS.keys()


def test_the_table_has_each_private_name_that_the_room_uses() -> None:
    ours = {name for path in INSIDE for name in defined(parsed(path))}
    used = {
        name
        for path in INSIDE
        for _, _, name in read(parsed(path))
        if is_private(name) and name not in FRAMES | {"_replace"}
    }
    assert used - ours - OTHERS.keys() <= TABLE


def test_the_room_uses_each_name_of_the_table_and_each_has_a_reason_and_users() -> None:
    source = "\n".join(path.read_text() for path in INSIDE if path.stem != "private_names")
    for private in PRIVATE_NAMES:
        assert f".{private.name}" in source or f'"{private.name}"' in source, private
        assert private.reason
        assert private.users
    assert len({(each.owner, each.name) for each in PRIVATE_NAMES}) == len(PRIVATE_NAMES)
