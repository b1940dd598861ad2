"""Queries to a hub over AMQP: one kept connection, or the official client's public API."""

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints._shared.client import Failure, explanation, failure_of, reason
from eventhub_checkpoints._shared.deadline import attempt_limit
from eventhub_checkpoints._shared.times import EPOCH
from eventhub_checkpoints.errors import HubUnavailableError
from eventhub_checkpoints.receive.address import (
    Address,
    HubProperties,
    HubQueries,
    PartitionProperties,
)
from eventhub_checkpoints.receive.amqp.fast import Opening
from eventhub_checkpoints.receive.amqp.management import HUB, Answer, QueryLink
from eventhub_checkpoints.receive.hub import ask_each, ask_with_hub
from eventhub_checkpoints.sdk.fallback import (
    FastPathError,
    StalledError,
    UnreadableFrameError,
    report_fallback,
)

if TYPE_CHECKING:
    from azure.eventhub import EventHubConsumerClient

    from eventhub_checkpoints.receive.amqp.address import HubAddress

log = logging.getLogger(__name__)

SLOW = (
    "the hub is queried through the client's public API, which takes a connection and 0.4 s for "
    "each partition"
)
KEPT_FOR = 60.0
"""Seconds without a query after which a connection is replaced: Azure's networks drop idle ones
silently, and nothing sends heartbeats between queries."""

KEPT_TIMEOUT = 5.0
"""Seconds without an answer after which a kept connection is taken for broken, and replaced."""


def read_properties(partition_id: str, answer: Mapping[str, object]) -> PartitionProperties:
    """Convert the client's partition properties; those of an empty partition are corrected.

    The last sequence number is -1 if the partition never held an event. If all its events have
    expired, it is still that of the last one, but the first event that can be read is the next one.
    """
    last, begin = answer["last_enqueued_sequence_number"], answer["beginning_sequence_number"]
    enqueued = answer["last_enqueued_time_utc"]
    assert isinstance(last, int)
    assert isinstance(begin, int)
    assert isinstance(enqueued, datetime)
    following = last + 1
    return PartitionProperties(
        partition_id,
        following if answer["is_empty"] else max(begin, 0),
        following,
        str(answer["last_enqueued_offset"]),
        enqueued if enqueued.tzinfo else enqueued.replace(tzinfo=UTC),
    )


@contextmanager
def explained(
    address: Address, partition_id: str | None = None, right: str = "listen"
) -> Iterator[None]:
    """Translate the client's errors into those of this package.

    Args:
        address: the hub that the client calls.
        partition_id: the partition it receives from; None for a management call.
        right: what the key or the credential must have the right to do.

    Raises:
        ConfigurationError: the hub or the consumer group does not exist, or the key, the
            signature or the credential is refused.
        HubUnavailableError: any other reason why the client gave up.
    """
    try:
        yield
    except EventHubError as error:
        raise explanation(error, address.scope(), partition_id, right) from error


class Answers:
    """Answers of a hub, collected until none is missing."""

    def __init__(self, partition_ids: Iterable[str]) -> None:
        self._queries = dict.fromkeys([HUB, *partition_ids])
        self._received: dict[str, Answer] = {}

    @property
    def missing(self) -> list[str]:
        """Queries without a usable answer."""
        return [each for each in self._queries if each not in self._received]

    def add(self, answers: Mapping[str, Answer]) -> Answer | None:
        """Keep the usable answers; return one that reports an error, if there is any.

        That the hub does not have a partition is an answer.
        """
        failed = {key: each for key, each in answers.items() if each.status >= 400}
        self._received |= {key: each for key, each in answers.items() if key not in failed}
        if HUB not in self._received:
            return failed.get(HUB)
        present = self.hub().partition_ids
        self._received |= {key: each for key, each in failed.items() if key not in present}
        return next((each for key, each in failed.items() if key in present), None)

    def hub(self) -> HubProperties:
        """Return the properties of the hub."""
        with readable():
            value = self._received[HUB].value
            return HubProperties(
                sorted(map(str, value["partition_ids"]), key=int), moment(value["created_at"])
            )

    def partitions(self) -> dict[str, PartitionProperties]:
        """Return the properties of the partitions that the hub has."""
        with readable():
            return {
                key: read_properties(
                    key,
                    {
                        "beginning_sequence_number": value["begin_sequence_number"],
                        "last_enqueued_sequence_number": value["last_enqueued_sequence_number"],
                        "last_enqueued_offset": value["last_enqueued_offset"],
                        "last_enqueued_time_utc": moment(value["last_enqueued_time_utc"]),
                        "is_empty": value["is_partition_empty"],
                    },
                )
                for key, (status, _, value) in self._received.items()
                if key != HUB and status < 400
            }


@contextmanager
def readable() -> Iterator[None]:
    """Raise `UnreadableFrameError` for properties that are missing or of another type."""
    try:
        yield
    except (AssertionError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise UnreadableFrameError(
            f"the hub's properties cannot be read: {type(error).__name__} {error}"
        ) from error


def moment(milliseconds: int) -> datetime:
    """Return the time so many milliseconds after the epoch, or before it."""
    return EPOCH + timedelta(milliseconds=milliseconds)


class ManagementQueries(HubQueries):
    """Queries over one management link, which is opened when it is needed.

    Where the client has changed, each query goes through its public API.

    Args:
        address: the hub.
        right: what the key or the credential must have the right to do.
    """

    def __init__(self, address: "HubAddress", right: str = "listen") -> None:
        self._address, self._right = address, right
        self._client: EventHubConsumerClient | None = None
        self._link: QueryLink | None = None
        self._answered_at = float("-inf")
        self._is_public = False

    def ask(
        self, partition_ids: Sequence[str], timeout: float
    ) -> tuple[HubProperties, dict[str, PartitionProperties]]:
        deadline = time.monotonic() + timeout
        if not self._is_public:
            try:
                with explained(self._address, right=self._right):
                    return self._ask_link(Answers(partition_ids), deadline, timeout)
            except FastPathError as error:
                self.close()
                self._is_public = True
                report_fallback(log, error, "queries", SLOW)
        left = max(0.0, deadline - time.monotonic())
        return ask_public(self._address, partition_ids, left)

    def close(self) -> None:
        self._disconnect()
        if self._client is not None:
            self._client.close()
            self._client = None

    def _ask_link(
        self, answers: Answers, deadline: float, timeout: float
    ) -> tuple[HubProperties, dict[str, PartitionProperties]]:
        """Ask until every query is answered, within the time limit."""
        outage = self._address.outage(str(self._address), timeout)
        while True:
            is_kept, began = self._is_connected(), time.monotonic()
            failure = self._attempt(answers, deadline, timeout, is_kept)
            if not answers.missing:
                outage.end()
                return answers.hub(), answers.partitions()
            if time.monotonic() >= deadline:
                self._disconnect()
                raise self._unanswered(answers.missing, timeout, failure)
            if is_kept and self._link is None:
                continue  # lost since the last query: that is not an attempt
            failure = failure or EventHubError(f"no answer in {time.monotonic() - began:.1f} s")
            wait = outage.pause(failure, began)
            if wait is None and failure_of(failure) is Failure.UNANSWERED:
                raise self._unanswered(answers.missing, timeout, failure)
            if wait is None:
                raise failure
            time.sleep(wait)

    def _attempt(
        self, answers: Answers, deadline: float, timeout: float, is_kept: bool
    ) -> Exception | None:
        """Send the missing queries once; return why some are still missing, as far as known.

        Raises:
            FastPathError: the client has changed.
            StalledError: a new connection is open, and nothing is answered on it.
        """
        now = time.monotonic()
        left = deadline - now
        limit = now + min(left, KEPT_TIMEOUT if is_kept else attempt_limit(timeout))
        try:
            link = self._connected(limit)
        except EventHubError as error:
            return error
        try:
            received = link.ask(answers.missing, limit)
        except Exception as error:
            self._link = None
            failure = link.connection.ended_by(error)
            if not isinstance(failure, EventHubError):
                raise failure from None
            return failure
        refused = answers.add(received)
        self._answered_at = time.monotonic()
        if refused is not None:
            refusal = link.error_of(refused)
            # A partition that the hub has is missing only while it moves.
            return refusal if HUB in answers.missing else EventHubError(reason(refusal))
        if answers.missing:
            self._disconnect()
        if not received and not is_kept and time.monotonic() < deadline:
            raise StalledError(
                f"{self._address}: a connection for queries was opened, but no query was "
                f"answered for {time.monotonic() - now:.0f} s"
            )
        return None

    def _is_connected(self) -> bool:
        """Return whether a connection is open; disconnect one that may have been dropped."""
        if time.monotonic() - self._answered_at > KEPT_FOR:
            self._disconnect()
        return self._link is not None

    def _connected(self, deadline: float) -> QueryLink:
        """Return the open link, opened if necessary.

        Raises:
            EventHubError: it could not be opened.
            FastPathError: the client has changed.
        """
        if self._link is None:
            self._client = self._client or self._address.open_client()
            seconds = max(0.0, deadline - time.monotonic())
            link = QueryLink(self._client)
            opening = Opening(link.connection, str(self._address), seconds)
            if opening.result(seconds) is None:
                opening.abandon()
                raise EventHubError("the connection was not open in time")
            self._link = link
        return self._link

    def _disconnect(self) -> None:
        if self._link is not None:
            self._link.connection.close()
            self._link = None

    def _unanswered(
        self, queries: Iterable[str], timeout: float, failure: Exception | None
    ) -> HubUnavailableError:
        silent = ", ".join(filter(None, queries))
        what = f"partition {silent} of {self._address}" if silent else str(self._address)
        why = f" ({reason(failure)})" if failure else ""
        return HubUnavailableError(
            f"{what} gave no answer within {round(timeout, 1):g} s; does the hub exist, and can it "
            f"be reached?{why}"
        )


def read_partition(address: "HubAddress", partition_id: str) -> PartitionProperties:
    """Ask once for a partition, through the client's public API, over a connection of its own.

    Blocks without limit if a server accepts the connection and sends nothing.

    Raises:
        EventHubError: the hub refuses, or cannot be reached.
    """
    with address.open_client(retry_total=0) as client:
        return read_properties(partition_id, client.get_partition_properties(partition_id))


def ask_public(
    address: "HubAddress", partition_ids: Sequence[str], timeout: float
) -> tuple[HubProperties, dict[str, PartitionProperties]]:
    """Ask as `HubQueries` does, with a client and a connection for each query.

    A partition may be gone: that is known from the hub, while the client's own attempts would take
    13 s. Partitions that fail for another reason are queried again.
    """
    deadline = time.monotonic() + timeout

    def read_hub() -> HubProperties:
        with address.open_client(retry_total=0) as client:
            answer = client.get_eventhub_properties()
        return HubProperties(sorted(answer["partition_ids"], key=int), answer["created_at"])

    def ask_hub() -> HubProperties:
        with explained(address):
            return address.outage(str(address), timeout).wait_out(read_hub)

    def ask_once(partition_id: str) -> PartitionProperties:
        with explained(address):
            return read_partition(address, partition_id)

    def ask_again(partition_id: str) -> PartitionProperties:
        left = max(0.0, deadline - time.monotonic())
        outage = address.outage(f"partition {partition_id} of {address}", left)
        with explained(address):
            return outage.wait_out(partial(read_partition, address, partition_id))

    hub, partitions, failed = ask_with_hub(address, partition_ids, ask_hub, ask_once, timeout)
    partitions |= ask_each(
        failed,
        ask_again,
        max(0.0, deadline - time.monotonic()),
        describe=lambda silent: f"partition {silent} of {address}",
    )
    return hub, partitions
