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


def name_of(node: ast.expr) -> str:
    """The last part of a dotted name."""
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
    calls = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
    # `loop.time()` is one too, and a function of that name in a test is not.
    return any(
        name_of(call) in CLOCKS or (isinstance(call, ast.Attribute) and call.attr == "time")
        for call in calls
    )


def names_of(node: ast.AST) -> set[str]:
    """The variables and attributes that an expression reads."""
    nodes = [each for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute)]
    return {name_of(each) for each in nodes}


def assigned(target: ast.expr) -> set[str]:
    """The variables or the attribute to which a value is assigned."""
    return {target.attr} if isinstance(target, ast.Attribute) else names_of(target)


def readings_in(statement: ast.stmt) -> set[str]:
    """The names to which readings of a clock are assigned."""
    return {
        name
        for node in ast.walk(statement)
        if isinstance(node, ast.Assign) and reads_a_clock(node.value)
        for target in node.targets
        for name in assigned(target)
    }


def imported(tree: ast.Module, module: str) -> set[str]:
    """The names that a file imports from a module."""
    return {
        name.name
        for each in tree.body
        if isinstance(each, ast.ImportFrom) and each.module == module
        for name in each.names
    }


def offences(text: str, file: str = "test_it.py") -> Iterator[tuple[int, str]]:
    """Lines of a file that sleep, compare readings of a clock, or ask for real time."""
    tree = ast.parse(text)
    is_simulated = file.startswith("simulated_") or bool(imported(tree, "simulated_time"))
    real = imported(tree, "waiting") & REAL if file.startswith("test_") else set()
    for statement in in_the_suite(tree):
        readings = readings_in(statement)
        for node in ast.walk(statement):
            if isinstance(node, ast.Compare):
                if reads_a_clock(node) or names_of(node) & readings:
                    yield node.lineno, "compares readings of a clock"
            elif isinstance(node, ast.Call):
                if name_of(node.func) == "sleep" and not may_sleep(node, is_simulated):
                    yield node.lineno, "sleeps"
                elif names_of(node.func) & real:
                    yield node.lineno, "asks for real time"


def may_sleep(call: ast.Call, is_simulated: bool) -> bool:
    """Whether a sleep takes no real time."""
    if call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0:
        return True
    of_asyncio = isinstance(call.func, ast.Attribute) and name_of(call.func.value) == "asyncio"
    return of_asyncio and is_simulated


def test_only_long_tests_sleep_or_measure() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{line}: {offence}"
        for path in sorted(TESTS.rglob("*.py"))
        for line, offence in offences(path.read_text(), path.name)
    ]
    assert not found, "\n".join(["not in a test with the marker `long`:", *found])


@pytest.mark.parametrize(
    "text",
    [
        "def test_it():\n    time.sleep(0.1)",
        "async def wait():\n    await asyncio.sleep(SECONDS)",
        "def test_it():\n    began = time.monotonic()\n    assert time.monotonic() - began < 5",
        "def test_it():\n    began = time.time()\n    assert 0 < time.time() - began < 1",
        "def test_it(self):\n    self.a = time.monotonic()\n    assert self.b - self.a < 1",
        "import simulated_time\ndef test_it():\n    time.sleep(1)",
        "from waiting import takes\ndef test_it():\n    with takes(1.0):\n        pass",
    ],
)
def test_an_offence_is_found(text: str) -> None:
    assert list(offences(text))


@pytest.mark.parametrize(
    "text",
    [
        "async def test_it():\n    await asyncio.sleep(0)",
        "from simulated_time import now, simulate\nasync def main():\n    await asyncio.sleep(60)",
        "from simulated_time import now\ndef test_it():\n    began = now()\n    assert now() == 3",
        "def test_it(self):\n    self.a = time.monotonic()\n    assert self.b > 1",
        "def test_it():\n    row = {'last_modified_time': time.time() - 60}",
        "@pytest.mark.long\ndef test_it():\n    time.sleep(1)",
        "pytestmark = [pytest.mark.long, pytest.mark.waits]\ndef test_it():\n    time.sleep(1)",
    ],
)
def test_what_is_allowed_is_no_offence(text: str) -> None:
    assert not list(offences(text))
