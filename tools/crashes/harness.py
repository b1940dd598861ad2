"""Rounds with seeds: how a scenario runs them, what is printed of each, and the report.

Round n of seed s is the round of seed s + n. The seed decides what happens; the timing depends on
the machine.
"""

import argparse
import random
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from traceback import format_exc
from typing import Any, Protocol

from backends import ServerMissingError
from counts import at_least_one

Rows = Iterable[Sequence[str]]
PROGRAM = "python -m crashes"


@dataclass(frozen=True)
class Result:
    """Result of a round.

    Attributes:
        seen: what occurred, by kind.
        problems: descriptions of broken rules.
        details: what the scenario's report is made of; None if the round could not be judged.
        seed: of the round.
    """

    seen: Counter[str] = field(default_factory=Counter)
    problems: Sequence[str] = ()
    details: Any = None
    seed: int = 0


class Scenario(Protocol):
    """Module of a scenario; its docstring is the command's help.

    `ROUNDS` is the number of rounds by default. `results` runs the rounds that the options choose;
    its `command` repeats one, with `--seed` and `--rounds` added.
    """

    ROUNDS: int
    __doc__: str | None

    def add_options(self, parser: argparse.ArgumentParser) -> None: ...

    def results(self, chosen: argparse.Namespace, command: str) -> Iterator[Result]: ...

    def report(self, results: Sequence[Result]) -> str: ...


def told(
    command: str,
    seed: int,
    run_round: Callable[[], Result],
    smaller: Callable[[], Sequence[str]] = tuple,
) -> Result:
    """Run a round, and print what occurred; of a failing one also how to repeat it.

    Args:
        command: repeats it, with `--seed` and `--rounds` added.
        seed: of the round.
        run_round: runs it.
        smaller: returns the names that a failing round does not need; see `shrunk`.
    """
    began = monotonic()
    try:
        result = replace(run_round(), seed=seed)
    except ServerMissingError:
        raise
    except Exception:
        # What it is about could not even begin, or has ended by itself; the next round may tell.
        result = Result(problems=[format_exc().rstrip()], seed=seed)
    verdict = "failed" if result.problems else "ok"
    counts = [f"{count} {kind}" for kind, count in result.seen.items() if count]
    seconds = f"{monotonic() - began:.0f} s"
    scenario = command.removeprefix(PROGRAM).strip()
    lines = [f"{scenario}: seed {seed} {verdict}: {', '.join([seconds, *counts])}"]
    lines += [f"  {problem}" for problem in result.problems]
    if result.problems:
        left_out = ",".join(smaller())
        repeated = f"{command} --seed {seed} --rounds 1"
        lines.append(f"  repeat: {repeated}{f' --without {left_out}' if left_out else ''}")
    # At once: several rounds may end at the same time.
    print("\n".join(lines), flush=True)
    return result


def seeds_of(chosen: argparse.Namespace) -> range:
    """Return the seeds of the rounds that the options choose."""
    return range(chosen.seed, chosen.seed + chosen.rounds)


def shrunk(names: Iterable[str], fails: Callable[[Sequence[str]], bool]) -> list[str]:
    """Return names without which a round still fails.

    Args:
        names: of everything that can be left out.
        fails: whether the round fails without these.
    """
    left_out: list[str] = []
    for name in names:
        if fails([*left_out, name]):
            left_out.append(name)
    return left_out


def table(rows: Rows) -> str:
    """Return a table in Markdown, with its columns aligned; the first row is its head."""
    head, *others = rows
    widths = [max(map(len, column)) for column in zip(head, *others, strict=True)]
    rule = ["-" * width for width in widths]
    return "\n".join(
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        for row in (head, rule, *others)
    )


def seeded(rounds: int) -> argparse.ArgumentParser:
    """Return a parser with the options of everything that runs rounds, for use as a parent.

    Args:
        rounds: by default.
    """
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument(
        "--rounds", type=at_least_one, default=rounds, help="by default %(default)s"
    )
    return parser


def main(scenarios: Mapping[str, Scenario], about: str, arguments: Sequence[str] | None) -> int:
    """Run the rounds of the scenario that is named first; return the exit status."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kinds = parser.add_subparsers(dest="scenario", required=True)
    parsers: dict[str, argparse.ArgumentParser] = {}
    for name, scenario in scenarios.items():
        text = scenario.__doc__ or ""
        parsers[name] = kinds.add_parser(
            name,
            parents=[seeded(scenario.ROUNDS)],
            help=text.partition("\n")[0],
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        scenario.add_options(parsers[name])
    chosen = parser.parse_args(arguments)
    name, scenario = chosen.scenario, scenarios[chosen.scenario]
    print(f"{name}: seed {chosen.seed}, {chosen.rounds} rounds", flush=True)
    command = " ".join([PROGRAM, name, *changed(parsers[name], chosen)])
    try:
        results = list(scenario.results(chosen, command))
    except ServerMissingError as missing:
        print(missing)
        return 1
    print(scenario.report(results))
    failed = sorted(result.seed for result in results if result.problems)
    print(f"failed: {', '.join(map(str, failed))}" if failed else "no failure")
    return 1 if failed else 0


def changed(parser: argparse.ArgumentParser, chosen: argparse.Namespace) -> Iterator[str]:
    """Yield the options that a round depends on and that are not as by default."""
    for name, value in vars(chosen).items():
        is_own = name not in ("scenario", "seed", "rounds", "parallel", "without", "no_shrink")
        if is_own and value != parser.get_default(name):
            yield f"--{name.replace('_', '-')}" + (
                "" if value is True else f" {shlex.quote(str(value))}"
            )
