"""Change the pure modules in every way that mutmut knows, and see which changes no test notices.

    python -m mutation                       all modules of modules.toml
    python -m mutation processing/policy     this one
    python -m mutation --again stores/...    of this one what survived in the last run

For every module, mutmut changes one place at a time and runs the module's tests until one fails.
A mutant that no test notices survives. It is either a hole in the tests or equivalent: a change
that no caller can observe. `equivalents.toml` has those that were read, each with its reason; the
run fails if another survives, and if one in the list no longer does.

mutmut changes functions only: constants and defaults of fields stay as they are. Values that tests
build while they are imported are those of the unchanged module, so a test builds its own.

What is tried stays in `.mutants/`; there, `mutmut browse` shows the mutants of a module.
"""

import argparse
import ast
import json
import os
import resource
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = Path("src/eventhub_checkpoints")
FOLDER = ROOT / ".mutants"
COPIED = ("tests", "tools", "benchmarks", "pyproject.toml")
"""What the tests need beside the source."""
MEMORY = 8 << 30
"""Bytes: a mutant may build a list without end until its time is up."""
CACHES = ("lru_cache", "cache")
"""Decorators that would still return what the unchanged function has returned."""
LEFT_ALONE = {"abstractmethod", "classmethod", "staticmethod"}
"""Decorators that mutmut knows, and one of functions without a body."""

SETTINGS = """\
[mutmut]
source_paths = src
only_mutate = {source}
also_copy =
{copied}
pytest_add_cli_args_test_selection =
{tests}
pytest_add_cli_args =
    -p
    no:cacheprovider
    -p
    mutation.quick
    -p
    pytest_timeout
    -p
    _hypothesis_pytestplugin
    --hypothesis-profile=mutants
use_git_change_detection = false
# Four times as long as its tests take with three seconds more: the time of a mutant.
timeout_constant = 3
timeout_multiplier = 4
"""


@dataclass(frozen=True)
class Mutant:
    """A change of one place.

    Attributes:
        module: path of the module in the package, without its ending.
        function: name of the function, with that of its class.
        change: lines before and after, each with `-` or `+` before it, without their indentation.
    """

    module: str
    function: str
    change: str

    def __str__(self) -> str:
        return f"{self.module} {self.function}\n{self.change}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Try the chosen modules; exit with 1 if a survivor was not read."""
    modules: dict[str, list[str]] = tomllib.loads((HERE / "modules.toml").read_text())
    parser = argparse.ArgumentParser(prog="python -m mutation")
    parser.add_argument("--again", action="store_true", help="try only what survived last time")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="by default all")
    options = parser.parse_args(arguments)
    # `choices` would refuse the empty list of an optional positional.
    if unknown := [name for name in options.modules if name not in modules]:
        parser.error(f"{', '.join(unknown)}: choose from {', '.join(modules)}")
    reasons = read_equivalents()
    troubles: list[str] = []
    for name in options.modules or modules:
        folder = FOLDER / name.replace("/", ".")
        survivors = (
            [each for each, (_, diff) in verdicts(folder).items() if diff] if options.again else []
        )
        if not options.again:
            prepare(folder, name, modules[name])
        run(folder, "mutmut", "run", "--max-children", "1", *survivors)
        troubles += judged(folder, name, reasons)
    if troubles:
        sys.exit(
            f"{len(troubles)} to read: add a test, or a reason to {HERE.name}/equivalents.toml"
        )


def read_equivalents() -> dict[Mutant, str]:
    """Return the mutants that were read and that nobody can notice, and why."""
    reasons: dict[Mutant, str] = {}
    for entry in tomllib.loads((HERE / "equivalents.toml").read_text())["equivalent"]:
        for change in entry["changes"]:
            mutant = Mutant(entry["module"], entry["function"], change.strip())
            assert mutant not in reasons, f"twice in equivalents.toml: {mutant}"
            reasons[mutant] = entry["reason"]
    return reasons


def judged(folder: Path, module: str, reasons: dict[Mutant, str]) -> list[str]:
    """Report what became of the mutants of a module, and return what is to be read."""
    found = verdicts(folder)
    survivors = [mutant(module, name, diff) for name, (_, diff) in found.items() if diff]
    expected = [each for each in reasons if each.module == module]
    unread = [f"SURVIVED {each}" for each in survivors if each not in expected]
    stale = [f"NO LONGER SURVIVES {each}" for each in expected if each not in survivors]
    counts = Counter(verdict for verdict, _ in found.values())
    print(
        f"{module}: {len(found)} mutants, {len(found) - len(survivors)} noticed "
        f"({counts['timeout']} by the time limit), {len(survivors) - len(unread)} equivalent, "
        f"{len(unread)} not read",
        *unread,
        *stale,
        sep="\n",
        flush=True,
    )
    return [*unread, *stale]


def prepare(folder: Path, module: str, tests: list[str]) -> None:
    """Lay out a copy in which mutmut changes one module and runs its tests."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in COPIED:
        (folder / name).symlink_to(ROOT / name)
    source = PACKAGE / f"{module}.py"
    (folder / source).write_text(undecorated((ROOT / source).read_text()))
    settings = SETTINGS.format(source=source, copied=lines(COPIED), tests=lines(tests))
    (folder / "setup.cfg").write_text(settings)


def lines(values: Iterable[str]) -> str:
    """Return values as a setting of several lines."""
    return "\n".join(f"    {value}" for value in values)


def undecorated(source: str) -> str:
    """Return the source with decorators applied by a statement after each function.

    mutmut leaves decorated functions alone, and so every property.
    """
    rows, tree = source.splitlines(), ast.parse(source)
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    functions = [node for body in bodies for node in body if isinstance(node, ast.FunctionDef)]
    # From the end, so that the numbers of the lines before stay right.
    for function in sorted(functions, key=lambda node: -node.lineno):
        decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
        if not decorators or LEFT_ALONE & set(decorators):
            continue
        assert function.end_lineno is not None
        calls = f"{function.name}"
        for decorator in reversed(decorators):
            if decorator.startswith(CACHES):
                continue
            calls = f"{decorator}({calls})"
        indent = " " * function.col_offset
        rows.insert(function.end_lineno, f"{indent}{function.name} = {calls}")
        first = function.decorator_list[0].lineno - 1
        del rows[first : function.lineno - 1]
    return "\n".join(rows) + "\n"


def run(folder: Path, *arguments: str) -> str:
    """Run a module in a folder and return what it printed."""
    ended = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        # Each mutant would search all that is installed for plugins of pytest. mutmut keeps the
        # tests of a function in a set: with this seed they run in the same order every time.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONHASHSEED": "0"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )
    if ended.returncode:
        sys.exit(f"{' '.join(arguments)} in {folder}:\n{ended.stdout}\n{ended.stderr}")
    return ended.stdout


def verdicts(folder: Path) -> dict[str, tuple[str, str]]:
    """Return the verdict of every mutant by its name, and the diff of each that survived."""
    found: dict[str, tuple[str, str]] = json.loads(run(folder, "mutation.verdicts"))
    return found


def mutant(module: str, name: str, diff: str) -> Mutant:
    """Return what the mutant of this name changes."""
    changed = [
        f"{line[0]} {line[1:].strip()}"
        for line in diff.splitlines()
        if line.startswith(("-", "+")) and not line.startswith(("---", "+++"))
    ]
    # package.module.x_function__mutmut_7, or package.module.xǁClassǁmethod__mutmut_7
    qualified = name.rpartition(".")[2].rpartition("__mutmut_")[0]
    function = qualified.removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
    return Mutant(module, function, "\n".join(changed))


if __name__ == "__main__":
    main()
