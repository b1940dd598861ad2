"""Measure the stores of all backends, each beside its bare driver and official Blob."""

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from rich.console import Console

from backends import BACKENDS, Backend, ServerMissingError
from benchmarks import memory, operations
from benchmarks.command import arguments, measured
from benchmarks.measuring import Case, Rounds, blocking, in_a_thread
from benchmarks.report import show, wide_console, write
from benchmarks.results import Entry, OneTrip, Result, Share
from benchmarks.servers import BLOB, MEASURED, Servers, of_backend

BATCH = 64
OWN_PART, LIST_PART = 0.15e-3, 3e-3
"""Seconds."""
TIMES = ("cpu", "wall")
RATE = ("cpu", "rate")
PACKAGES = (
    "sqlalchemy",
    "psycopg",
    "aiosqlite",
    "pymysql",
    "aiomysql",
    "redis",
    "cassandra-driver",
    "azure-data-tables",
)


def cases(servers: Servers) -> dict[str, Entry]:
    """The cases on these servers."""
    one, each = (Share("cpu", OWN_PART),), (Share("cpu", OWN_PART, BATCH),)
    listed = (Share("cpu", LIST_PART),)

    def balancing(case: Callable[..., Rounds], **own: int) -> Case:
        return partial(in_a_thread, partial(case, servers.sync, **own))

    def counted(prepare: Callable[..., operations.Work], **own: int) -> Case:
        return partial(
            operations.trips, servers.counted, prepare=partial(prepare, size=BATCH, **own)
        )

    renew, first_claims = operations.renew, operations.first_claims
    return {
        "renew": Entry("renew", balancing(renew), one, TIMES),
        "checkpoint": Entry(
            "checkpoint again", partial(operations.recheckpoint, servers.sync), one, TIMES
        ),
        "claim-64": Entry("64 first claims", balancing(first_claims, size=BATCH), each, TIMES),
        "renew-64": Entry("64 renewals", balancing(renew, size=BATCH), each, TIMES),
        "trips-64": Entry(
            "64 first claims, counted",
            counted(operations.claiming),
            (OneTrip(),),
            ("trips",),
        ),
        "round-64": Entry(
            "a round, 64 partitions",
            balancing(operations.balance, size=BATCH, hands_over=False),
            (),
            TIMES,
        ),
        "round-64-handover": Entry(
            "the same, hand-over",
            balancing(operations.balance, size=BATCH, hands_over=True),
            (),
            TIMES,
        ),
        "trips-round-64": Entry(
            "a round, counted", counted(operations.balancing, hands_over=False), (), ("trips",)
        ),
        "trips-round-64-handover": Entry(
            "the same, hand-over", counted(operations.balancing, hands_over=True), (), ("trips",)
        ),
        "list": Entry("list 1024", balancing(operations.list_many), listed, TIMES),
        "list-aio": Entry(
            "list 1024, aio",
            partial(operations.list_many, partial(blocking, servers.aio)),
            listed,
            TIMES,
        ),
        "write-8": Entry(
            "checkpoints, 8 tasks", partial(operations.writes, servers.aio, tasks=8), (), RATE
        ),
        "write-64": Entry(
            "checkpoints, 64 tasks", partial(operations.writes, servers.aio, tasks=64), (), RATE
        ),
        "memory": Entry(
            "1024 partitions", partial(memory.consumers, servers.urls), (), ("memory",)
        ),
        "memory-aio": Entry(
            "1024 partitions, aio",
            partial(memory.consumers, servers.urls, variant="--aio"),
            (),
            ("memory",),
        ),
    }


ONE_TRIP = ("postgres", "redis")
"""Where a batch of claims is one statement or one script."""


def entry_of(entry: Entry, backend: str) -> Entry:
    """A case as it is for one backend."""
    targets = [
        target for target in entry.targets if backend in ONE_TRIP or not isinstance(target, OneTrip)
    ]
    return replace(entry, title=f"{entry.title}, {backend}", targets=tuple(targets))


def started(chosen: Sequence[str], running: ExitStack, console: Console) -> Servers:
    """The servers that there are; those that are missing are said."""
    found: dict[str, Backend] = {}
    for name in dict.fromkeys([*chosen, BLOB]):
        try:
            found[name] = running.enter_context(BACKENDS[name]())
        except ServerMissingError as missing:
            console.print(f"without {name}: {missing}")
    if has_azurite := BLOB in found:
        found.pop(BLOB).stop()
    names = [name for name in chosen if name in found or (name == BLOB and has_azurite)]
    return Servers(names, found, has_azurite)


def main() -> None:
    """Measure what was asked for."""
    names = [*cases(Servers())]
    asked = arguments("benchmarks.backends", __doc__, [*MEASURED, *names])
    console = wide_console()
    chosen = [name for name in MEASURED if name in asked.only] or [*MEASURED]
    results: list[Result] = []
    with ExitStack() as running:
        servers = started(chosen, running, console)
        if not servers.names:
            sys.exit("none of these backends has a server here")
        for name, entry in cases(servers).items():
            if name in asked.only or not {*names} & {*asked.only}:
                console.print(f"measuring {name}, {asked.rounds} rounds")
                rounds = measured(entry, asked.rounds, asked.quick)
                results += [
                    Result(
                        f"{name}-{backend}",
                        entry_of(entry, backend),
                        [of_backend(backend, each) for each in rounds],
                    )
                    for backend in servers.names
                ]
    show(results, console)
    write(results, asked.quick, asked.json, PACKAGES)
    console.print(f"written to {asked.json}")


if __name__ == "__main__":
    main()
