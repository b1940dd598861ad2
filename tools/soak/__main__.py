"""Run consumers for a long time, and report whether they grow.

    python -m soak real                                     30 minutes on PostgreSQL
    python -m soak real --store redis --seconds 7200
    python -m soak real --leak 200                          to see that a leak is found

Run it with PYTHONPATH=src:tools. `real`: two groups read the same hub, one with each client, each
by an `EventProcessor`. One consumer of each group runs all the time; another one joins regularly
and leaves again. An independent ledger counts what is lost and what is processed again.
"""

import argparse
import sys

from backends import BACKENDS, ServerMissingError
from soak.real import Plan, started


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
    chosen = parser.parse_args(arguments)
    plan = Plan(chosen.store, chosen.seconds, chosen.rate, kept=chosen.leak)
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
