"""Fuzz the parsers, and print the faults that were found.

    python -m fuzzing --seconds 60                          all targets, each for a minute
    python -m fuzzing --target redis-values --seconds 600
    python -m fuzzing --target redis-values --input FILE    run an input that was printed
    python -m fuzzing --list

Run it with PYTHONPATH=src:tools. Where atheris is installed, coverage guides it, and an input that
takes more than 2 GB is a fault; elsewhere, or with `--engine random`, inputs are random changes of
the corpus. Both print their seed. An input that takes longer than 10 s is a fault as well. The
status is 1 if there is one.
"""

import argparse
import base64
import importlib.util
import json
import logging
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from fuzzing.mutations import mutated
from fuzzing.target import LONGEST, Target, place_of
from fuzzing.targets import TARGETS

SLOWEST = 10
"""Seconds of one input."""
MOST_MEGABYTES = 2048


@dataclass
class Outcome:
    """What was found in one target.

    Attributes:
        inputs: number of inputs.
        seconds: time that they took.
        faults: by place, the error and an input.
    """

    inputs: int = 0
    seconds: float = 0.0
    faults: dict[str, tuple[str, bytes]] = field(default_factory=dict)


def guided(target: Target, seed: int, seconds: float) -> Outcome:
    """Fuzz a target under atheris, in another process."""
    outcome = Outcome()
    began = monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(target.corpus):
            Path(folder, str(number)).write_bytes(data)
        options = {
            "seed": seed % 2**32 or 1,
            "max_total_time": int(seconds),
            "max_len": LONGEST,
            "timeout": SLOWEST,
            "rss_limit_mb": MOST_MEGABYTES,
            "print_final_stats": 1,
            "artifact_prefix": f"{folder}/stopped-",
        }
        arguments = [f"-{name}={value}" for name, value in options.items()]
        ended = subprocess.run(
            [sys.executable, "-m", "fuzzing.child", target.name, *arguments, folder],
            capture_output=True,
            check=False,
        )
        for line in ended.stdout.splitlines():
            if line.startswith(b"{"):
                fault = json.loads(line)
                found = fault["error"], base64.b64decode(fault["input"])
                outcome.faults[fault["place"]] = found
        said = ended.stderr.decode(errors="replace")
        for stopped in Path(folder).glob("stopped-*"):
            outcome.faults[stopped.name.split("-")[1]] = said[-2000:], stopped.read_bytes()
    if ended.returncode and not outcome.faults:
        raise SystemExit(f"{target.name} could not be fuzzed: {said[-2000:]}")
    count = re.search(r"stat::number_of_executed_units:\s*(\d+)", said)
    outcome.inputs = int(count[1]) if count else 0
    outcome.seconds = monotonic() - began
    return outcome


def unguided(target: Target, seed: int, seconds: float) -> Outcome:
    """Run random changes of the corpus."""
    outcome, chance = Outcome(), random.Random(seed)
    began = monotonic()
    while outcome.seconds < seconds:
        data = mutated(chance.choice(target.corpus), chance, LONGEST)
        outcome.inputs += 1
        started = time.process_time()
        try:
            target.run(data)
        except Exception as error:
            outcome.faults.setdefault(place_of(error), (f"{error!r:.300}", data))
        if time.process_time() - started > SLOWEST:
            outcome.faults.setdefault("timeout", (f"longer than {SLOWEST} s", data))
        outcome.seconds = monotonic() - began
    return outcome


def lines_of(target: Target, outcome: Outcome) -> Iterator[str]:
    """Yield what is printed of an outcome."""
    yield (
        f"{target.name}: {outcome.inputs:,} inputs in {outcome.seconds:.0f} s, "
        f"{len(outcome.faults)} faults"
    )
    for place, (error, data) in outcome.faults.items():
        with tempfile.NamedTemporaryFile(
            prefix=f"{target.name}-", suffix=".input", delete=False
        ) as file:
            file.write(data)
        yield f"  {place}: {error}\n  {data[:200]!r} in {file.name}"


def main(arguments: list[str] | None = None) -> int:
    """Fuzz the chosen targets; return the exit status."""
    has_atheris = importlib.util.find_spec("atheris") is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", choices=TARGETS, action="append", help="may be repeated")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    engines = ("atheris", "random")
    parser.add_argument("--engine", choices=engines, default=engines[not has_atheris])
    parser.add_argument("--input", type=Path, help="run this one, and show its error")
    parser.add_argument("--list", action="store_true", help="print the names of the targets")
    chosen = parser.parse_args(arguments)
    names = chosen.target or list(TARGETS)
    if chosen.list:
        print("\n".join(names))
        return 0
    if chosen.input:
        for name in names:
            print(f"{name}: {TARGETS[name].run(chosen.input.read_bytes())}")
        return 0
    print(f"{chosen.engine}: seed {chosen.seed}, {len(names)} targets", flush=True)
    fuzz = guided if chosen.engine == "atheris" else unguided
    faults = inputs = 0
    for name in names:
        outcome = fuzz(TARGETS[name], chosen.seed, chosen.seconds)
        faults += len(outcome.faults)
        inputs += outcome.inputs
        print("\n".join(lines_of(TARGETS[name], outcome)), flush=True)
    print(f"{inputs:,} inputs, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    sys.exit(main())
