"""Try what each caller does while a hub or a store is away, or refuses: how long, and what is said.

    python -m outages                                               every cell: more than an hour
    python -m outages --callers driver sink --faults refused --seconds 12

A trial makes one call through a gate in front of a server. The gate fails in one way, and recovers
after some seconds or never. A line says how long the call took, how it ended, what the log said,
and how many events were lost or came twice; `problems` compares that with what is documented.
"""

import argparse
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from itertools import product

from counts import at_least_one
from outages.hub_callers import HUB_CALLERS, PATIENT
from outages.place import ANSWERS, AWAY
from outages.result import FOREVER, Result
from outages.trial import STORE_CALLERS, try_one

OPERATION, REACH = 60.0, 5.0
"""Documented limits: of an operation, and of a person's wait for a server that is not there."""
SLACK = 15.0
"""Seconds that a busy machine, and the last attempt, may add."""
OFFICIAL_SILENCE = ("consumer", "mute")
"""The official client alone does not notice that a connected hub is mute."""
PERSON = ("ehcp lag", "create", "verify")
"""Callers that wait for a refused connection or an unknown host no longer than `REACH`."""


def limits(caller: str, fault: str) -> float:
    """Return the documented seconds for which a caller waits out a fault."""
    if caller in PATIENT:
        return FOREVER
    of_store = 10.0 if caller.endswith("write") else 30.0
    longest = OPERATION if caller in HUB_CALLERS else of_store
    is_person = caller.endswith(PERSON)
    return REACH if is_person and fault in ("refused", "unknown") else longest


def problems(result: Result) -> list[str]:
    """Return in what a result differs from what is documented."""
    found = []
    limit = limits(result.caller, result.fault)
    if result.caller in PATIENT and result.seconds == FOREVER:
        is_told = (result.caller, result.fault) != OFFICIAL_SILENCE
        if is_told and "unhealthy" not in result.notes:
            found.append("what waits for ever says so")
    elif result.fault in ANSWERS:
        if not result.error or result.took > SLACK:
            found.append("a refusal is an error at once")
    elif result.seconds < limit - SLACK:
        if result.error:
            found.append(f"an outage of {result.seconds:g} s is waited out")
        if result.lost:
            found.append(f"{result.lost} events are lost")
        if result.twice and "sink" not in result.caller and "send" not in result.caller:
            found.append(f"{result.twice} events came twice")
    elif (
        result.seconds == FOREVER
        and limit != FOREVER
        and (not result.error or result.took > 2 * limit + SLACK)
    ):
        found.append(f"an outage that stays is an error after {limit:g} s")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Try the chosen cells, several at a time; return how many differ from what is documented."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    callers = [*HUB_CALLERS, *STORE_CALLERS]
    parser.add_argument("--callers", nargs="+", choices=callers, default=callers)
    parser.add_argument("--faults", nargs="+", choices=[*AWAY, *ANSWERS], default=[*AWAY, *ANSWERS])
    parser.add_argument("--seconds", nargs="+", type=float, default=[3, 12, 45, FOREVER])
    parser.add_argument("--at-once", type=at_least_one, default=4, help="trials at the same time")
    chosen = parser.parse_args(arguments)
    cells = [
        (caller, fault, seconds)
        for caller, fault in product(chosen.callers, chosen.faults)
        for seconds in (chosen.seconds if fault in AWAY else [FOREVER])
        if caller in HUB_CALLERS or fault in AWAY[:4]
        if caller != "ehcp lag" or fault not in ("handshake", "untrusted")
    ]
    spawn = multiprocessing.get_context("spawn")
    count = 0
    with ProcessPoolExecutor(chosen.at_once, mp_context=spawn, max_tasks_per_child=1) as pool:
        for future in [pool.submit(try_one, *cell) for cell in cells]:
            result = future.result()
            wrong = problems(result)
            count += bool(wrong)
            print(result, *(f"\n    WRONG: {each}" for each in wrong), flush=True)
    print(f"{len(cells)} trials, {count} of them differ from what is documented")
    return min(count, 1)


if __name__ == "__main__":
    raise SystemExit(main())
