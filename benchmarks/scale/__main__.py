"""Simulate consumer groups of up to 1,000 consumers, and print what load balancing costs them.

    python -m benchmarks.scale --quick
    python -m benchmarks.scale --only intervals --seed 7
    python -m benchmarks.scale --docs docs        write benchmarks/scale.md, and the plots
    python -m benchmarks.scale --only real        real processes, compared with the simulation

The same seed gives the same figures, except for the run times and the table `real`.
"""

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.command import new_file
from benchmarks.scale import real, tables
from benchmarks.scale.figures import write_plots
from benchmarks.scale.plan import TABLES, planned, run_all
from benchmarks.scale.scenarios import Outcome, Setup
from counts import at_least_one

REAL = "real"
NAMES = (*TABLES, REAL)
RESULTS = Path(__file__).parents[1] / "scale.md"


def arguments() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=1, help="of the simulation (1)")
    parser.add_argument(
        "--jobs", type=at_least_one, default=2, help="simulations at the same time (2)"
    )
    parser.add_argument("--quick", action="store_true", help="small groups only")
    parser.add_argument(
        "--only", action="append", choices=NAMES, help="only this table; may be repeated"
    )
    parser.add_argument(
        "--docs", type=Path, help="the folder of the pages, whose plots are rewritten"
    )
    parser.add_argument(
        "--load", type=Path, help="an earlier result file: what is in it is not run again"
    )
    parser.add_argument(
        "--json", type=Path, default=new_file("benchmarks.scale"), help="the result file"
    )
    return parser.parse_args()


def main() -> None:
    """Run the chosen tables, print them, and write the files."""
    asked = arguments()
    print(f"seed {asked.seed}")
    began = time.perf_counter()
    plan = planned([name for name in asked.only or NAMES if name != REAL], asked.seed, asked.quick)
    everything = [setup for setups in plan.values() for setup in setups]
    known = loaded(asked.load) if asked.load else {}
    missing = [setup for setup in everything if setup not in known]
    outcomes = known | run_all(missing, asked.jobs, show)
    sections = {
        name: tables.RENDER[name]([outcomes[setup] for setup in setups])
        for name, setups in plan.items()
    }
    if "starts" in plan:
        sections["costs"] = tables.costs([outcomes[setup] for setup in plan["starts"]])
        sections["prices"] = tables.prices()
    if REAL in (asked.only or NAMES):
        sections[REAL] = real.compare(asked.seed, asked.quick)
    for name, section in sections.items():
        print(f"\n{name}\n\n{section}")
    print(f"\n{len(set(missing))} simulations in {time.perf_counter() - began:.0f} s")
    if asked.docs:
        for name, section in sections.items():
            tables.write_into(RESULTS, name, section)
        write_plots(asked.docs / "images", outcomes.values())
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    records = [asdict(outcome) for outcome in outcomes.values()]
    asked.json.write_text(json.dumps({"seed": asked.seed, "runs": records}, indent=1) + "\n")
    print(f"written to {asked.json}")


def loaded(path: Path) -> dict[Setup, Outcome]:
    """Return the outcomes in a result file."""
    outcomes = {}
    for record in json.loads(path.read_text())["runs"]:
        record["setup"] = Setup(**record["setup"])
        for name in ("hand_overs_by_second", "requests_by_second"):
            record[name] = {int(second): count for second, count in record[name].items()}
        outcomes[record["setup"]] = Outcome(**record)
    return outcomes


def show(outcome: Outcome) -> None:
    """Report one run."""
    balanced = tables.duration(outcome.balanced_after)
    print(
        f"{outcome.setup}: balanced after {balanced}, run {outcome.run_seconds:.1f} s", flush=True
    )


if __name__ == "__main__":
    main()
