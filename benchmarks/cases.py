"""The cases by name, and what each has to reach."""

from dataclasses import dataclass
from functools import partial

from benchmarks import batches, imports, operations
from benchmarks.measuring import BARE, OFFICIAL, Case


@dataclass(frozen=True)
class Target:
    """That ours costs at most so much of what another side does.

    Attributes:
        measure: `"cpu"` or `"wall"`.
        other: the side.
        most: the greatest ratio, ours divided by theirs.
    """

    measure: str
    other: str
    most: float

    def __str__(self) -> str:
        if self.most < 0.5:
            return f"{1 / self.most:g} x faster than {self.other}"
        return f"at most {self.most:g} x {self.other}"


@dataclass(frozen=True)
class Entry:
    """A case of the benchmark."""

    title: str
    case: Case
    targets: tuple[Target, ...] = ()


NEAR_BARE = Target("cpu", BARE, 1.1)

CASES = {
    "renew": Entry("renew an ownership", operations.renew, (NEAR_BARE,)),
    "recheckpoint": Entry("write a checkpoint again", operations.recheckpoint, (NEAR_BARE,)),
    "first-claim": Entry(
        "first claim", operations.first_claim, (NEAR_BARE, Target("cpu", OFFICIAL, 0.6))
    ),
    "list": Entry("list 1024 ownerships", operations.list_many),
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
        "1024 first claims, 10 ms away, aio", partial(batches.first_claims, batches.by_tasks)
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
