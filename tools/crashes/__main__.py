"""Kill, stall and disturb programs while they work, and judge what became of events and positions.

    python -m crashes processing --store all --rounds 50
    python -m crashes processing --store redis --seed 7 --rounds 1      repeat a round
    python -m crashes moves --source blob --target postgres --rounds 20
    python -m crashes stalls --rounds 240
    python -m crashes spark --stage "in the sink" --rounds 3
    python -m crashes sink --way stream --rounds 3
    python -m crashes SCENARIO --help

Run it with PYTHONPATH=src:tools. Round n of seed s is the round of seed s + n: the seed decides
what happens, and the timing depends on the machine. A round that fails is printed as a command
that repeats it.
"""

import logging
import sys
from collections.abc import Mapping, Sequence

from crashes import harness, moves, stalls
from crashes.processing import scenario as processing
from crashes.sink import scenario as sink
from crashes.spark import scenario as spark

SCENARIOS: Mapping[str, harness.Scenario] = {
    "processing": processing,
    "moves": moves,
    "stalls": stalls,
    "spark": spark,
    "sink": sink,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen scenario; return the exit status."""
    return harness.main(SCENARIOS, __doc__ or "", arguments)


if __name__ == "__main__":
    # What is provoked here is logged as an error too; the judges say what was wrong.
    logging.disable(logging.ERROR)
    sys.exit(main())
