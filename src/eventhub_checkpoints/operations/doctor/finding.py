"""What a rule of `ehcp doctor` is given, and what it returns."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.operations.groups import Group
from eventhub_checkpoints.receive.address import PartitionProperties
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sdk.consumer import EXPIRES_AFTER
from eventhub_checkpoints.stores.hook_results import Examination

BALANCING_INTERVAL = 30.0
"""Seconds between two load balancing rounds of a consumer.

Source: azure-eventhub 5.15.1, `EventHubConsumerClient`, `load_balancing_interval`.
"""


class Severity(StrEnum):
    """Severity of a finding.

    Attributes:
        WARNING: the group works, but not as well as it should, or something else may break.
        ERROR: events are lost, read twice or not read, or will be.
        UNKNOWN: something could not be examined.
    """

    WARNING = "WARNING"
    ERROR = "ERROR"
    UNKNOWN = "UNKNOWN"

    @property
    def status(self) -> int:
        """Return the exit status that stands for it."""
        return {Severity.WARNING: 1, Severity.ERROR: 2, Severity.UNKNOWN: 3}[self]


TARGET = "{target}"
"""Stands in a rule's remedy for the options that name store, hub and group of a command."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Defect of a consumer group, its store or its hub.

    Attributes:
        code: identifies the rule; stable.
        evidence: what was seen, in one sentence.
        remedy: the command or the change that mends it. A command shows first what it would change.
        partition_ids: partitions that it is about, in numeric order; empty if it is about all.
    """

    code: str
    severity: Severity
    evidence: str
    remedy: str
    partition_ids: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings of the consumers, and what is acceptable.

    Attributes:
        balancing_interval: the `load_balancing_interval` of the consumers, in seconds.
        expires_after: their `partition_ownership_expiration_interval`, in seconds.
        price: dollars per 10,000 requests on Blob; None: that of `PRICES`.
        budget: dollars per month that the requests may cost; None: the smallest server's price.
    """

    balancing_interval: float = BALANCING_INTERVAL
    expires_after: float = EXPIRES_AFTER
    price: float | None = None
    budget: float | None = None


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """What was read about a consumer group; None where it could not be read.

    Attributes:
        backend: a key of `PRICES`; "" if the price does not depend on the requests.
        group: its rows.
        examination: its rows as they are stored; None also where the store cannot show them.
        other_groups: groups of the store with the same hub and group in another namespace, or with
            the same namespace and hub; read where this one has no rows.
        properties: of each partition of the hub, read after the rows.
        following: by partition, the sequence number of the first event after the offset of its
            checkpoint; of those that are not at the newest event and could be read.
        failures: the error of each step that failed: `store`, `probe`, `hub` or `consumer_group`.
        clock_skew: seconds by which the store's clock is ahead of this process's.
        list_seconds, claim_seconds: duration of a list of ownerships, and of a claim.
        checkpoint_rate: checkpoints per second of the whole group.
        unchecked: one sentence for each thing that could not be examined, and is not a defect.
        prefix: of the names of the store's blobs; `""` if it has none.
    """

    scope: Scope
    backend: str = ""
    group: Group | None = None
    examination: Examination | None = None
    other_groups: Sequence[Scope] = ()
    properties: Mapping[str, PartitionProperties] | None = None
    following: Mapping[str, int] = field(default_factory=dict)
    failures: Mapping[str, CheckpointStoreError] = field(default_factory=dict)
    clock_skew: float | None = None
    list_seconds: float | None = None
    claim_seconds: float | None = None
    checkpoint_rate: float | None = None
    unchecked: Sequence[str] = ()
    prefix: str = ""


Rule = Callable[[GroupSnapshot, Limits], Iterator[Finding]]
"""Finds defects in a snapshot."""
