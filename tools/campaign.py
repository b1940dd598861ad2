"""Run a randomized test for any number of rounds, and print what occurred.

    python tools/campaign.py forward --rounds 20000
    python tools/campaign.py forward --seed 7 --rounds 1      repeat a round that has failed
    python tools/campaign.py races --backend redis --rounds 100
    python tools/campaign.py cancel --backend sqlite
    python tools/campaign.py raise --backend postgres --rounds 2
    python tools/campaign.py signal --backend redis --rounds 200000
    python tools/campaign.py move --source blob --target postgres --rounds 20
    python tools/campaign.py machine --backend mysql --rounds 500
    python tools/campaign.py machine --backend mysql --seconds 600
    python tools/campaign.py failover --store postgres --rounds 20
    python tools/campaign.py skew --backend postgres --rounds 20

`forward`: round n of seed s is the round of seed s + n, so the seed in a failure repeats that round
alone. `races`: 16 stores claim 64 partitions in each round; the seed decides in which order they
start, and the winner depends on the machine. `cancel`, `raise` and `signal` interrupt calls
(`tools/interruptions.py`): at every step for this many rounds, or this many calls. `move` moves a
group between stores under load, and kills the move at every step (`tools/move_chaos.py`). `machine`
compares claims and checkpoints with the rules (`tools/store_machine.py`): in this many examples, or
for this time. `failover` ends the primary of a cluster under load in each round
(`tools/failover.py`). `skew` runs processes whose clocks are an hour apart, and kills one of them
in each round (`tools/clock_skew.py`).
"""

import argparse
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Callable

from backends import BACKENDS, ServerMissingError
from claim_races import run_races
from clock_skew import HAVE_CLOCKS, run_skews
from failover import CLUSTERS, run_failovers
from forward_model import run_round
from interruptions import InterruptedCallError, Lines, cancelled, raised_at, run_signals, run_steps
from move_chaos import run_moves
from store_machine import run_machine, run_machine_for


def forward(seed: int, rounds: int, events: int) -> Counter[str]:
    """Check that checkpoints go forward; return what occurred, by kind.

    Raises:
        AssertionError: a round failed; the message has its seed.
    """
    seen: Counter[str] = Counter()
    for number in range(rounds):
        seen.update(run_round(seed + number, events).seen)
    return seen


def races(backend: str, seed: int, rounds: int) -> Counter[str]:
    """Race 16 sync and aio stores for the same 64 partitions, each of which one has to win.

    Raises:
        AssertionError: a race had a different outcome.
    """
    with BACKENDS[backend]() as running, running.place() as place:
        return run_races(place, seed, rounds)


def steps(name: str, backend: str, seed: int, rounds: int) -> Counter[str]:
    """Interrupt calls at every step, `rounds` times; return the number of steps, by operation.

    Raises:
        AssertionError: an interrupted call has left something behind.
    """
    seen: Counter[str] = Counter()
    with BACKENDS[backend]() as running, running.place() as place:
        for number in range(rounds):
            if name == "cancel":
                seen += run_steps(place, "aio", cancelled, seed + number)
            else:
                error = (InterruptedCallError, KeyboardInterrupt)[number % 2]
                seen += run_steps(place, "sync", raised_at(error), seed + number)
    return seen


def signals(backend: str, seed: int, interrupted: int) -> Counter[str]:
    """Interrupt this many calls by a signal, at random times.

    Raises:
        AssertionError: a later call does not work.
    """
    with BACKENDS[backend]() as running, running.place() as place:
        return run_signals(place, seed, interrupted)


def moves(source: str, target: str, seed: int, rounds: int) -> Counter[str]:
    """Move a group between stores under load, and kill the move at every step.

    Raises:
        AssertionError: an event was lost, or read twice because of a move.
    """
    with BACKENDS[source]() as here, BACKENDS[target]() as there:
        return run_moves(here, there, seed, rounds)


def machine(backend: str, seed: int, rounds: int, seconds: float | None) -> Counter[str]:
    """Compare the claims and checkpoints of several clients with the rules.

    Raises:
        AssertionError: a store differs; the message has the seed and the shortest calls that show
            it.
    """
    with BACKENDS[backend]() as running, running.place() as place:
        if seconds is not None:
            return run_machine_for(place, seed, seconds)
        return run_machine(place, seed, rounds)


def failovers(store: str, seed: int, rounds: int) -> Counter[str]:
    """End the primary of a cluster under load, and count what its successor has forgotten.

    Raises:
        AssertionError: a client did not go on, or a cluster that keeps what it confirms did not.
    """
    with CLUSTERS[store]() as cluster:
        return run_failovers(cluster, seed, rounds)


def skews(backend: str, seed: int, rounds: int) -> Counter[str]:
    """Run processes whose clocks are an hour apart, and kill one of them in each round.

    Raises:
        AssertionError: a clock that is off had an effect.
    """
    with BACKENDS[backend]() as running:
        return run_skews(running, seed, rounds)


def common(rounds: int = 1000) -> argparse.ArgumentParser:
    """Return the options of every campaign; a parser of its own for each, for its own default."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--rounds", type=int, default=rounds, help="by default %(default)s")
    return parser


def parsed(arguments: list[str] | None) -> tuple[str, int, int, Callable[[], Counter[str]]]:
    """Return name, seed and rounds of the chosen campaign, and a function that runs it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    campaigns = parser.add_subparsers(dest="campaign", required=True)
    model = campaigns.add_parser("forward", parents=[common()], help="checkpoints go forward")
    model.add_argument("--events", type=int, default=60, help="of a round, without overlaps")
    on_backends = {
        "races": "16 stores race for claims",
        "cancel": "aio calls are cancelled at every step",
        "raise": "sync calls are interrupted at every line, by two kinds of exceptions in turn",
        "signal": "sync calls are interrupted by a signal handler",
        "machine": "claims and checkpoints are compared with the rules",
    }
    for name, what in on_backends.items():
        parent = common(1) if name in {"cancel", "raise"} else common()
        parser_of = campaigns.add_parser(name, parents=[parent], help=what)
        parser_of.add_argument("--backend", choices=BACKENDS, required=True)
        if name == "machine":
            parser_of.add_argument("--seconds", type=float, help="run for this time instead")
    move = campaigns.add_parser("move", parents=[common()], help="a group moves between stores")
    shared = [name for name, kind in BACKENDS.items() if kind.reaches_processes]
    move.add_argument("--source", choices=shared, default="blob")
    move.add_argument("--target", choices=shared, default="postgres")
    skew = campaigns.add_parser("skew", parents=[common(20)], help="clocks are an hour apart")
    skew.add_argument("--backend", choices=HAVE_CLOCKS, required=True)
    failover = campaigns.add_parser(
        "failover", parents=[common(20)], help="a cluster's primary ends"
    )
    failover.add_argument("--store", choices=CLUSTERS, required=True)
    chosen = parser.parse_args(arguments)
    runs: dict[str, Callable[[], Counter[str]]] = {
        "forward": lambda: forward(chosen.seed, chosen.rounds, chosen.events),
        "races": lambda: races(chosen.backend, chosen.seed, chosen.rounds),
        "cancel": lambda: steps("cancel", chosen.backend, chosen.seed, chosen.rounds),
        "raise": lambda: steps("raise", chosen.backend, chosen.seed, chosen.rounds),
        "signal": lambda: signals(chosen.backend, chosen.seed, chosen.rounds),
        "machine": lambda: machine(chosen.backend, chosen.seed, chosen.rounds, chosen.seconds),
        "move": lambda: moves(chosen.source, chosen.target, chosen.seed, chosen.rounds),
        "skew": lambda: skews(chosen.backend, chosen.seed, chosen.rounds),
        "failover": lambda: failovers(chosen.store, chosen.seed, chosen.rounds),
    }
    return chosen.campaign, chosen.seed, chosen.rounds, runs[chosen.campaign]


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen campaign; return the exit status."""
    name, seed, rounds, run = parsed(arguments)
    print(f"{name}: seed {seed}, {rounds} rounds", flush=True)
    began = time.monotonic()
    try:
        seen = run()
    except (AssertionError, ServerMissingError) as error:
        print(error)
        return 1
    met = ", ".join(f"{count} {kind}" for kind, count in seen.most_common())
    print(f"no failure in {time.monotonic() - began:.1f} s: {met}")
    for (file, line), reason in sorted(Lines.excluded.items()):
        print(f"not interrupted: {file}, line {line}: {reason}")
    return 0


if __name__ == "__main__":
    # A refused checkpoint is a warning to a user; here it is an expected result.
    logging.getLogger("eventhub_checkpoints").setLevel(logging.ERROR)
    sys.exit(main())
