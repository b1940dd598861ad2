"""Run a randomized test for any number of rounds, and print what occurred.

    python tools/campaign.py forward --rounds 20000
    python tools/campaign.py forward --seed 7 --rounds 1      repeat a round that has failed
    python tools/campaign.py races --backend redis --rounds 100
    python tools/campaign.py cancel --backend sqlite
    python tools/campaign.py raise --backend postgres --rounds 2
    python tools/campaign.py signal --backend redis --rounds 200000
    python tools/campaign.py machine --backend mysql --seconds 600
    python tools/campaign.py failover --store postgres --rounds 20
    python tools/campaign.py skew --backend postgres --rounds 20
    python tools/campaign.py receive --path public
    python tools/campaign.py decoder --rounds 100

Round n of seed s is the round of seed s + n, so the seed in a failure repeats that round alone.
What kills, stalls or disturbs other programs and judges them afterwards is in `python -m crashes`.
"""

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import get_args

import decoder_equality
import forward_model
import receive_faults
from backends import BACKENDS, Place, ServerMissingError
from claim_races import run_races
from clock_skew import HAVE_CLOCKS, run_skews
from counts import at_least_one
from crashes.harness import seeded
from eventhub_checkpoints.receive.ranges import ReceivePath
from failover import CLUSTERS, run_failovers
from interruptions import InterruptedCallError, Lines, cancelled, raised_at, run_signals, run_steps
from store_machine import run_machine, run_machine_for

Chosen = argparse.Namespace
ERRORS = InterruptedCallError, KeyboardInterrupt


@contextmanager
def place_on(backend: str) -> Iterator[Place]:
    """Yield a place on a running backend."""
    with BACKENDS[backend]() as running, running.place() as place:
        yield place


def forward(chosen: Chosen) -> Counter[str]:
    """Check a random model of "no checkpoint goes back"."""
    return forward_model.run_rounds(chosen.seed, chosen.rounds, chosen.events)


def races(chosen: Chosen) -> Counter[str]:
    """Let 16 sync and aio stores race for the same 64 partitions, each of which one has to win."""
    with place_on(chosen.backend) as place:
        return run_races(place, chosen.seed, chosen.rounds)


def cancel(chosen: Chosen) -> Counter[str]:
    """Cancel aio calls at every step."""
    seen: Counter[str] = Counter()
    with place_on(chosen.backend) as place:
        for number in range(chosen.rounds):
            seen += run_steps(place, "aio", cancelled, chosen.seed + number)
    return seen


def interrupt(chosen: Chosen) -> Counter[str]:
    """Interrupt sync calls at every line, by two kinds of exceptions in turn."""
    seen: Counter[str] = Counter()
    with place_on(chosen.backend) as place:
        for number in range(chosen.rounds):
            errors = ERRORS[number % 2 :] + ERRORS[: number % 2]
            seen += run_steps(place, "sync", raised_at(*errors), chosen.seed + number)
    return seen


def signals(chosen: Chosen) -> Counter[str]:
    """Interrupt this many sync calls by a signal handler, at random times."""
    with place_on(chosen.backend) as place:
        return run_signals(place, chosen.seed, chosen.rounds)


def machine(chosen: Chosen) -> Counter[str]:
    """Compare claims and checkpoints of several clients with the rules, in this many examples."""
    with place_on(chosen.backend) as place:
        if chosen.seconds is not None:
            return run_machine_for(place, chosen.seed, chosen.seconds)
        return run_machine(place, chosen.seed, chosen.rounds)


def failover(chosen: Chosen) -> Counter[str]:
    """End the primary of a cluster under load, and count what its successor has forgotten."""
    with CLUSTERS[chosen.store]() as cluster:
        return run_failovers(cluster, chosen.seed, chosen.rounds)


def skew(chosen: Chosen) -> Counter[str]:
    """Run processes whose clocks are an hour apart, and kill one of them in each round."""
    with BACKENDS[chosen.backend]() as running:
        return run_skews(running, chosen.seed, chosen.rounds)


def receive(chosen: Chosen) -> Counter[str]:
    """Break a reader's connection in every known way; each event is read exactly once."""
    return receive_faults.run_rounds(chosen.seed, chosen.rounds, chosen.path)


def decoder(chosen: Chosen) -> Counter[str]:
    """Compare the decoder with the official client's, in all nine columns, on random events."""
    return decoder_equality.run_rounds(chosen.seed, chosen.rounds)


CAMPAIGNS: dict[str, tuple[Callable[[Chosen], Counter[str]], int]] = {
    "forward": (forward, 1000),
    "races": (races, 1000),
    "cancel": (cancel, 1),
    "raise": (interrupt, 2),
    "signal": (signals, 1000),
    "machine": (machine, 1000),
    "failover": (failover, 20),
    "skew": (skew, 20),
    "receive": (receive, 200),
    "decoder": (decoder, 20),
}
"""What each runs, and how many rounds of it by default."""


def parsed(arguments: list[str] | None) -> Chosen:
    """Return the options of the chosen campaign."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_subparsers(dest="campaign", required=True)
    parsers = {
        name: kinds.add_parser(name, parents=[seeded(rounds)], help=run.__doc__)
        for name, (run, rounds) in CAMPAIGNS.items()
    }
    parsers["forward"].add_argument("--events", type=at_least_one, default=60, help="of a round")
    for name in ("races", "cancel", "raise", "signal", "machine"):
        parsers[name].add_argument("--backend", choices=BACKENDS, required=True)
    parsers["machine"].add_argument("--seconds", type=float, help="run for this time instead")
    parsers["skew"].add_argument("--backend", choices=HAVE_CLOCKS, required=True)
    parsers["failover"].add_argument("--store", choices=CLUSTERS, required=True)
    parsers["receive"].add_argument("--path", choices=get_args(ReceivePath), default="fast")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen campaign; return the exit status."""
    chosen = parsed(arguments)
    print(f"{chosen.campaign}: seed {chosen.seed}, {chosen.rounds} rounds", flush=True)
    began = time.monotonic()
    run, _ = CAMPAIGNS[chosen.campaign]
    try:
        seen = run(chosen)
    except (AssertionError, ServerMissingError) as error:
        print(error)
        return 1
    met = ", ".join(f"{count} {kind}" for kind, count in seen.most_common())
    print(f"no failure in {time.monotonic() - began:.1f} s: {met}")
    for (file, line), reason in sorted(Lines.excluded.items()):
        print(f"not interrupted: {file}, line {line}: {reason}")
    return 0


if __name__ == "__main__":
    # A refused checkpoint is a warning to a user, and a broken connection an error of the client;
    # here both are expected.
    logging.getLogger("eventhub_checkpoints").setLevel(logging.ERROR)
    logging.getLogger("azure").setLevel(logging.CRITICAL)
    sys.exit(main())
