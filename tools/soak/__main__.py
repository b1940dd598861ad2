"""Run consumers for a long time, and report whether they grow.

    python -m soak real                                     30 minutes on PostgreSQL
    python -m soak real --store redis --seconds 7200
    python -m soak real --leak 200                          to see that a leak is found
    python -m soak real --keep-tags                         to see what azure-eventhub keeps
    python -m soak day                                      24 simulated hours

Run it with PYTHONPATH=src:tools:. in the root of the repository. `real`: two groups read the same
hub, one with each client, each by an `EventProcessor`. One consumer of each group runs all the
time; another one joins regularly and leaves again. An independent ledger counts what is lost and
what is processed again. `day`: two groups of two consumers on a simulated clock, which hand their
partitions over to each other every ten minutes; one partition stalls after each hand-over.
"""

import argparse
import sys

from backends import BACKENDS, ServerMissingError
from soak.real import Plan, started
from soak.simulated import run_day
from soak.trend import table


def main(arguments: list[str] | None = None) -> int:
    """Run the soak; return the exit status: 1 if something grows or is lost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ways = parser.add_subparsers(dest="way", required=True)
    real = ways.add_parser("real", help="real processes on a real store")
    shared = [name for name, kind in BACKENDS.items() if kind.reaches_processes]
    plan = Plan()
    real.add_argument("--store", choices=shared, default=plan.backend)
    real.add_argument("--seconds", type=float, default=plan.seconds)
    real.add_argument("--rate", type=float, default=plan.rate, help="events per second")
    real.add_argument("--leak", type=int, metavar="BYTES", default=0, help="kept of every event")
    real.add_argument("--keep-tags", action="store_true", help="see the page on performance")
    day = ways.add_parser("day", help="consumers on a simulated clock")
    day.add_argument("--hours", type=float, default=24.0)
    day.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    if chosen.way == "day":
        outcome_of_day = run_day(chosen.hours, chosen.seed)
        print(
            f"seed {chosen.seed}: {outcome_of_day.events:,} events in {chosen.hours:g} hours, "
            f"{outcome_of_day.claims:,} rounds of claims, {outcome_of_day.handovers:,} hand-overs, "
            f"{outcome_of_day.stalls:,} stalls"
        )
        print(table([("aio", "KiB allocated", outcome_of_day.trend)]))
        return 0 if outcome_of_day.trend.is_flat else 1
    plan = Plan(
        chosen.store, chosen.seconds, chosen.rate, kept=chosen.leak, keeps_tags=chosen.keep_tags
    )
    print(f"soak: {plan}", flush=True)
    try:
        with started(plan) as soak:
            outcome = soak.run()
    except ServerMissingError as missing:
        print(missing)
        return 1
    print(outcome.report())
    return 1 if outcome.problems or not all(one.is_flat for *_, one in outcome.trends) else 0


if __name__ == "__main__":
    sys.exit(main())
