"""What the deterministic suite may do with time: simulate it, or wait with `eventually`.

A test that sleeps, or compares how long something took, says something of the machine as well. Such
a test has the marker `long`; every other one compares simulated seconds exactly, or does not ask.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time"}
"""Functions whose readings are only good for differences; `time.time` also dates rows."""
REAL = {"let_pass", "takes"}
"""What `waiting` has for long tests. Fixtures hand it on to them, so it is sought in tests only."""
OTHER_ENVIRONMENTS = ("clusters", "jvm", "kafka")
"""Folders whose tests run one after the other, in environments of their own."""


def name_of(node: ast.expr) -> str:
    """The last name of a dotted one."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def is_long(marks: ast.expr) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "long" for node in ast.walk(marks))


def module_is_long(tree: ast.Module) -> bool:
    return any(
        isinstance(each, ast.Assign)
        and name_of(each.targets[0]) == "pytestmark"
        and is_long(each.value)
        for each in tree.body
    )


def in_the_suite(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that a run without the marker `long` executes."""
    if module_is_long(tree):
        return
    for each in tree.body:
        decorators = getattr(each, "decorator_list", [])
        if not any(map(is_long, decorators)):
            yield each


def reads_a_clock(node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Call)
        and (
            name_of(each.func) in CLOCKS
            or (name_of(each.func) == "time" and isinstance(each.func, ast.Attribute))
        )
        for each in ast.walk(node)
    )


def real_time(tree: ast.Module) -> set[str]:
    """The names of `REAL` that a file imports."""
    return {
        name.name
        for each in tree.body
        if isinstance(each, ast.ImportFrom) and each.module == "waiting"
        for name in each.names
    } & REAL


def offences(
    tree: ast.Module, *, has_tests: bool = True, simulated: bool = False
) -> Iterator[tuple[int, str]]:
    """Lines that sleep or compare readings of a clock.

    Args:
        tree: of the file.
        has_tests: whether it has tests, and not what long tests share with others.
        simulated: whether it is only for a simulation; one that imports it is, too.
    """
    real = real_time(tree) if has_tests else set()
    simulated |= any(
        isinstance(each, ast.ImportFrom) and each.module == "simulated_time" for each in tree.body
    )
    for statement in in_the_suite(tree):
        readings = {
            name_of(target)
            for node in ast.walk(statement)
            if isinstance(node, ast.Assign) and reads_a_clock(node.value)
            for target in node.targets
        } - {""}

        def is_reading(node: ast.AST, readings: set[str] = readings) -> bool:
            named = any(name_of(each) in readings for each in ast.walk(node) if is_name(each))
            return named or reads_a_clock(node)

        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and name_of(node.func) == "sleep":
                if is_zero(node) or (simulated and is_asyncio(node.func)):
                    continue
                yield node.lineno, "sleeps"
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in real:
                yield node.lineno, "is about real time"
            elif isinstance(node, ast.Compare) and is_reading(node):
                yield node.lineno, "compares readings of a clock"


def is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name)


def is_zero(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0


def is_asyncio(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and name_of(function.value) == "asyncio"


def test_only_long_tests_sleep_or_measure() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{line}: {offence}"
        for path in sorted(TESTS.rglob("*.py"))
        if path.relative_to(TESTS).parts[0] not in OTHER_ENVIRONMENTS
        for line, offence in offences(
            ast.parse(path.read_text()),
            has_tests=path.name.startswith("test_"),
            simulated=path.name.startswith("simulated_"),
        )
    ]
    assert not found, "\n".join(["not in a test with the marker `long`:", *found])


@pytest.mark.parametrize(
    "text",
    [
        "def test_it():\n    time.sleep(0.1)",
        "async def wait():\n    await asyncio.sleep(SECONDS)",
        "def test_it():\n    began = time.monotonic()\n    assert time.monotonic() - began < 5",
        "def test_it():\n    began = time.time()\n    assert 0 < time.time() - began < 1",
        "import simulated_time\ndef test_it():\n    time.sleep(1)",
        "from waiting import takes\ndef test_it():\n    with takes(1.0):\n        pass",
    ],
)
def test_an_offence_is_found(text: str) -> None:
    assert list(offences(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "async def test_it():\n    await asyncio.sleep(0)",
        "from simulated_time import now, simulate\nasync def main():\n    await asyncio.sleep(60)",
        "from simulated_time import now\ndef test_it():\n    began = now()\n    assert now() == 3",
        "def test_it():\n    row = {'last_modified_time': time.time() - 60}",
        "@pytest.mark.long\ndef test_it():\n    time.sleep(1)",
        "pytestmark = [pytest.mark.long, pytest.mark.waits]\ndef test_it():\n    time.sleep(1)",
    ],
)
def test_what_is_allowed_is_no_offence(text: str) -> None:
    assert not list(offences(ast.parse(text)))
