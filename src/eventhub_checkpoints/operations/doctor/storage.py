"""Rules about what a group depends on: its store, its hub, and clocks."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints._shared.texts import partitions, some
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    HubUnavailableError,
    StoreAccessError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.operations.doctor.finding import (
    Finding,
    GroupSnapshot,
    Limits,
    Severity,
)
from eventhub_checkpoints.operations.groups import in_order
from eventhub_checkpoints.stores.hook_results import ScopeRows

LARGEST_SKEW = 5.0
"""Seconds by which two clocks may differ; the service's times have a resolution of one second."""


class Failure(NamedTuple):
    """Meaning of an error of a step.

    Attributes:
        step: `consumer_group`, `hub`, or `""` for any step.
        error: type of the error.
        remedy: may name the `{group}`.
    """

    step: str
    error: type[CheckpointStoreError]
    code: str
    severity: Severity
    remedy: str


FAILURES = (
    Failure(
        "consumer_group",
        CheckpointStoreError,
        "consumer_group_missing",
        Severity.ERROR,
        "create the consumer group {group!r}, or name another one with --group",
    ),
    Failure(
        "hub",
        HubUnavailableError,
        "hub_unreachable",
        Severity.UNKNOWN,
        "check the name and the network",
    ),
    Failure(
        "hub",
        CheckpointStoreError,
        "hub_refused",
        Severity.ERROR,
        "correct --hub, or the right to listen",
    ),
    Failure(
        "",
        StoreUnavailableError,
        "store_unreachable",
        Severity.UNKNOWN,
        "check the address and the network",
    ),
    Failure(
        "",
        StoreNotReadyError,
        "store_not_ready",
        Severity.ERROR,
        "create it: store.create() in Python",
    ),
    Failure(
        "",
        StoreAccessError,
        "store_refused",
        Severity.ERROR,
        "grant the right that is named",
    ),
    Failure("", CheckpointStoreError, "store_failed", Severity.ERROR, "see the message"),
)
"""Meanings of errors, of which the first that fits counts."""


def failures(snapshot: GroupSnapshot, _limits: Limits) -> Iterator[Finding]:
    """Find that store or hub cannot be used."""
    for step, error in snapshot.failures.items():
        meaning = next(
            each for each in FAILURES if each.step in ("", step) and isinstance(error, each.error)
        )
        remedy = meaning.remedy.format(group=snapshot.scope.consumer_group)
        yield Finding(meaning.code, meaning.severity, str(error), remedy)


def clocks(snapshot: GroupSnapshot, limits: Limits) -> Iterator[Finding]:
    """Find that the store's clock differs from this machine's."""
    skew = snapshot.clock_skew
    if skew is None or abs(skew) <= LARGEST_SKEW:
        return
    # Stores of other packages compare the store's times with the consumer's clock.
    is_error = abs(skew) >= limits.expires_after / 2
    yield Finding(
        "clock_skew",
        Severity.ERROR if is_error else Severity.WARNING,
        f"the store's clock is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} this "
        "machine's; consumers with another package's store take or keep partitions by it",
        "synchronise this machine's clock (chronyc makestep, or w32tm /resync)",
    )


def unsuitable_settings() -> dict[str, tuple[str, str]]:
    """Return evidence and remedy for each setting of a Blob account, by its name."""
    update = "az storage account blob-service-properties update"
    return {
        "versioning": (
            "the account keeps a version of a blob for every renewal and checkpoint, and lists "
            "become slow",
            f"{update} --enable-versioning false",
        ),
        "soft_delete": (
            "the account keeps deleted blobs (soft delete)",
            f"{update} --enable-delete-retention false",
        ),
        "hierarchical_namespace": (
            "the account has a hierarchical namespace, whose lists also contain folders",
            f"move the group to an account without one: {as_typed('migrate --help')}",
        ),
    }


def settings(snapshot: GroupSnapshot, _limits: Limits) -> Iterator[Finding]:
    """Find settings of the storage that checkpoints should not have."""
    stored = snapshot.examination.settings if snapshot.examination else {}
    for name, (evidence, remedy) in unsuitable_settings().items():
        if stored.get(name):
            yield Finding(name, Severity.WARNING, evidence, remedy)


def unreadable_rows(snapshot: GroupSnapshot, _limits: Limits) -> Iterator[Finding]:
    """Find rows that a list leaves out."""
    if snapshot.examination is None:
        return
    rows = snapshot.examination.rows
    skipped = [*rows.ownerships.skipped, *rows.checkpoints.skipped]
    if skipped:
        is_blob = snapshot.backend == "blob" and not snapshot.prefix
        effect = (
            "consumers with the official store in Python, JavaScript or Go fail at such rows, and "
            "others ignore them"
        )
        yield Finding(
            "unreadable_rows",
            Severity.ERROR if is_blob else Severity.WARNING,
            f"{some(skipped, '; ')}: {effect if is_blob else 'consumers ignore such rows'}",
            "find out who wrote them; the next checkpoint of a consumer replaces one without a "
            "position, and store.delete_partition() in Python deletes others",
        )


def official_faults(snapshot: GroupSnapshot, _limits: Limits) -> Iterator[Finding]:
    """Find rows that this package reads, and at which an official store fails."""
    if snapshot.examination is None or snapshot.prefix:  # an official store does not list them
        return
    rows = snapshot.examination.rows
    for kind, faults, remedy in (
        (
            "ownership",
            rows.ownerships.official_faults,
            "find out who wrote it; the next claim or renewal of a consumer with a store of this "
            "package writes it as it should be",
        ),
        (
            "checkpoint",
            rows.checkpoints.official_faults,
            "find out who wrote it; the next checkpoint of a consumer with a store of this package "
            "replaces it, and so does store.update_checkpoint(row, force=True) in Python",
        ),
    ):
        ids = in_order({fault.partition_id for fault in faults})
        if ids:
            named = some(f"{fault.partition_id} ({fault.reason})" for fault in faults)
            yield Finding(
                "official_store_fails",
                Severity.ERROR,
                f"{partitions(ids)} with {kind} rows at which the lists of the official Python and "
                f"JavaScript stores fail, so that their consumers start no partition: {named}",
                remedy,
                ids,
            )


def other_spellings(snapshot: GroupSnapshot, _limits: Limits) -> Iterator[Finding]:
    """Find rows of the same group under names in another case."""
    if snapshot.backend == "blob":
        writers = "as Java, Go and Rust write names; consumers with names in lower case"
        remedy = (
            "let all consumers use one spelling (name_case='as-typed'), and merge the rows: "
            f"{as_typed('migrate --help')}"
        )
    else:
        writers = "as some consumer types its names; consumers of this spelling"
        remedy = (
            "let all consumers type the names alike, and take over the rows that are left: "
            f"{as_typed('copy --help')}"
        )
    for spelling in spellings(snapshot):
        if spelling.prefix == snapshot.prefix:
            yield Finding(
                "other_spelling",
                Severity.WARNING,
                f"the group also has rows ({row_count(spelling)}) under {spelling.scope}, "
                f"{writers} do not see them",
                remedy,
            )


def other_prefixes(snapshot: GroupSnapshot, _limits: Limits) -> Iterator[Finding]:
    """Find rows of the same group whose names have another prefix than those of this store."""
    own = f"the prefix {snapshot.prefix!r}" if snapshot.prefix else "no prefix"
    for spelling in spellings(snapshot):
        if spelling.prefix != snapshot.prefix:
            yield Finding(
                "other_prefix",
                Severity.WARNING,
                f"the group also has rows ({row_count(spelling)}) under {spelling}, and this store "
                f"has {own}; consumers of the two do not see each other, and official SDKs and "
                "KEDA see only names without a prefix",
                "let all consumers use one prefix; unless the rows are a mirror, delete those that "
                f"no consumer uses: {as_typed('delete --help')}",
            )


def spellings(snapshot: GroupSnapshot) -> Sequence[ScopeRows]:
    """Return the rows of the same group that this store does not read."""
    return snapshot.examination.spellings if snapshot.examination else ()


def row_count(rows: ScopeRows) -> int:
    """Return how many readable rows there are."""
    return len(rows.ownerships.rows) + len(rows.checkpoints.rows)
