"""Spans and metrics of OpenTelemetry, where its API is installed.

Callers use these functions, which do nothing otherwise; `telemetry` creates the spans.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from eventhub_checkpoints._shared.telemetry import Telemetry

Names = tuple[str, ...]
"""Namespace, hub, consumer group and partition id; without the last: of several partitions."""


class Operation:
    """Operation that is not traced.

    In a `with` block, spans that the block creates become children of the operation's span, and an
    exception that leaves the block marks it as failed.

    Attributes:
        context: OpenTelemetry's context with the span; None if there is no span.
    """

    __slots__ = ()
    context: Any = None

    def __enter__(self) -> Self:
        self.attach()
        return self

    def __exit__(self, exc_type: object, exc_value: BaseException | None, _: object) -> None:
        if exc_value is None:
            self.end()
        else:
            self.fail(exc_value)
        self.detach()

    def attach(self) -> None:
        """Make the span the parent of those that the current thread or task starts."""

    def detach(self) -> None:
        """Undo `attach`, in the same thread or task."""

    def set(self, name: str, value: int) -> None:
        """Set an attribute of the span."""

    def end(self) -> None:
        """End the operation, unless it has ended."""

    def fail(self, error: BaseException | None) -> None:
        """End the operation as failed, unless it has ended."""


UNTRACED = Operation()


@cache
def telemetry() -> "Telemetry | None":
    """Return what creates spans and metrics; None if OpenTelemetry's API is not installed."""
    try:
        from eventhub_checkpoints._shared.telemetry import Telemetry
    except ImportError:
        return None
    return Telemetry() if Telemetry.is_enabled() else None


def received(names: Names, count: int) -> None:
    """Count events that the client has delivered."""
    if (active := telemetry()) is not None:
        active.received(names, count)


def process_batch(names: Names, events: Sequence[Any]) -> Operation:
    """Start the processing of a batch."""
    active = telemetry()
    return (
        UNTRACED if active is None or not events else active.process(names, events, is_batch=True)
    )


def process_event(names: Names, event: Any) -> Operation:
    """Start the processing of one event."""
    active = telemetry()
    return UNTRACED if active is None else active.process(names, [event], is_batch=False)


def checkpoint(names: Names, sequence_number: int | None) -> Operation:
    """Start the write of a checkpoint."""
    active = telemetry()
    if active is None:
        return UNTRACED
    return active.request("checkpoint", names, {"sequence_number": sequence_number or 0})


def claim(proposals: Sequence[Any]) -> Operation:
    """Start a batch of claims, or of releases."""
    active = telemetry()
    if active is None or not proposals:
        return UNTRACED
    names: Names = tuple(proposals[0].scope)
    if len(proposals) == 1:
        names = (*names, proposals[0].partition_id)
    is_claim = any(proposal.owner_id for proposal in proposals)
    operation = "claim_ownership" if is_claim else "release_ownership"
    return active.request(operation, names, {"proposed": len(proposals)})


def behind_latest(names: Names, figures: Mapping[str, float] | None) -> None:
    """Report how far a query is behind the end of its hub; None: no longer.

    Args:
        names: of the hub and the consumer group, without a partition.
        figures: number of events: `min`, `avg` and `max` of the partitions.
    """
    if (active := telemetry()) is not None:
        active.behind_latest(names, figures)


def child_of(context: Any) -> AbstractContextManager[object]:
    """Return a block whose spans are children of another operation's, by its `context`."""
    active = telemetry()
    return nullcontext() if active is None or context is None else active.child_of(context)


def current_context() -> Any:
    """Return the context of the span that the current thread or task is in, for `child_of`."""
    active = telemetry()
    return None if active is None else active.current_context()
