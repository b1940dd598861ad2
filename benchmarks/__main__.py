"""Measure the cases on Blob, print the table, and write the JSON file."""

from functools import partial

from benchmarks import batches, imports, operations
from benchmarks.command import arguments, measured
from benchmarks.measuring import BARE, OFFICIAL, blocking, in_a_thread
from benchmarks.operations import MANY, QUICK_MANY
from benchmarks.report import show, wide_console, write
from benchmarks.results import Entry, Limit, Result, Target
from benchmarks.sides import aio_sides, sync_sides

REQUEST = Target("cpu", OFFICIAL, 0.4)
AIO_REQUEST = Target("cpu", OFFICIAL, 0.3)

aio = partial(blocking, aio_sides)

CASES = {
    "renew": Entry(
        "renew an ownership",
        partial(in_a_thread, partial(operations.renew, sync_sides)),
        (REQUEST,),
    ),
    "recheckpoint": Entry(
        "write a checkpoint again", partial(operations.recheckpoint, sync_sides), (REQUEST,)
    ),
    "first-claim": Entry(
        "first claim",
        partial(in_a_thread, partial(operations.first_claims, sync_sides)),
        (Target("cpu", OFFICIAL, 0.25),),
    ),
    "list": Entry(
        "list 1024 ownerships",
        partial(in_a_thread, partial(operations.list_many, sync_sides)),
        (Target("cpu", OFFICIAL, 0.15),),
    ),
    "renew-aio": Entry("renew an ownership, aio", partial(operations.renew, aio), (AIO_REQUEST,)),
    "recheckpoint-aio": Entry(
        "write a checkpoint again, aio", partial(operations.recheckpoint, aio), (AIO_REQUEST,)
    ),
    "first-claim-aio": Entry(
        "first claim, aio",
        partial(operations.first_claims, aio),
        (Target("cpu", OFFICIAL, 0.25),),
    ),
    "list-aio": Entry(
        "list 1024 ownerships, aio",
        partial(operations.list_many, aio),
        (Target("cpu", OFFICIAL, 0.15),),
    ),
    "stall": Entry(
        "longest stall of the event loop, list of 5000 ownerships",
        partial(operations.stalls, aio_sides),
        (Limit("stall", 0.020),),
        ("stall",),
    ),
    "first-claims": Entry(
        "1024 first claims, 10 ms away",
        partial(batches.first_claims, batches.by_threads),
        (Target("wall", OFFICIAL, 1 / 8),),
    ),
    "renewals": Entry(
        "1024 renewals, 10 ms away",
        partial(batches.renewals, batches.by_threads),
        (Target("wall", OFFICIAL, 1 / 4),),
    ),
    "first-claims-aio": Entry(
        "1024 first claims, 10 ms away, aio",
        partial(batches.first_claims, batches.by_tasks),
        (Target("wall", OFFICIAL, 0.15),),
    ),
    "renewals-aio": Entry(
        "1024 renewals, 10 ms away, aio", partial(batches.renewals, batches.by_tasks)
    ),
    "import-memory": Entry(
        "import the memory store",
        partial(imports.importing, imports.MEMORY),
        (Target("cpu", BARE, 1.15),),
    ),
    "import-memory-aio": Entry(
        "import the memory store, aio", partial(imports.importing, imports.MEMORY_AIO)
    ),
    "import-blob": Entry("import the Blob store", partial(imports.importing, imports.BLOB)),
    "import-blob-aio": Entry(
        "import the Blob store, aio", partial(imports.importing, imports.BLOB_AIO)
    ),
}


def main() -> None:
    """Measure the chosen cases."""
    options = arguments("benchmarks", __doc__, [*CASES])
    console = wide_console()
    results = []
    for name in options.only or CASES:
        console.print(f"measuring {name}, {options.rounds} rounds")
        rounds = measured(CASES[name], options.rounds, options.quick)
        results.append(Result(name, CASES[name], rounds))
    show(results, console)
    if options.quick:
        console.print(f"quick: {QUICK_MANY} partitions in the place of {MANY}")
    write(results, options.quick, options.json)
    console.print(f"written to {options.json}")


if __name__ == "__main__":
    main()
