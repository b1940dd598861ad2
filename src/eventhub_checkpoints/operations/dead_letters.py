"""Dead letters in a file, a table or a hub: open them, choose among them, and send them back.

`DeadLetterFile` and `DeadLetterTable` have the methods of `DeadLetterSource` and `Discards`;
`HubDeadLetters` reads what a `DeadLetterHub` has sent.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol, Self, runtime_checkable
from urllib.parse import urlsplit
from urllib.request import url2pathname

from azure.eventhub import EventData, EventHubProducerClient
from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints._shared.client import reason
from eventhub_checkpoints._shared.deadline import UNREACHABLE_TIMEOUT
from eventhub_checkpoints._shared.paths import exists
from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints._shared.secrets import masked, quoted
from eventhub_checkpoints._shared.texts import has
from eventhub_checkpoints.dead_letters import DeadLetterFile
from eventhub_checkpoints.dead_letters.dead_letter import (
    MALFORMED,
    DeadLetter,
    Mark,
    StoredDeadLetter,
    current_dead_letters,
)
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    HubUnavailableError,
    StoreError,
)
from eventhub_checkpoints.operations.peek import through_some_group
from eventhub_checkpoints.receive.address import PartitionProperties
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.amqp.events import EventStream
from eventhub_checkpoints.receive.amqp.queries import explained
from eventhub_checkpoints.receive.hub import partition_properties
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT, PREFETCH
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.backends import SQL, missing_driver_of, scheme_of

SOURCES = (
    "a file (dead-letters.jsonl, file:///PATH), the URL of a SQL database (sqlite:///FILE, "
    "postgresql://...), or a hub (its connection string, NAMESPACE/HUB, or its name in the "
    "namespace of --hub)"
)
"""Texts that `open_dead_letters` accepts."""
READERS = 8
"""Partitions of a hub of dead letters that are read at a time."""


class DeadLetterSource(Protocol):
    """Sink whose dead letters can be read."""

    def dead_letters(self) -> list[StoredDeadLetter]:
        """Return the dead letters in the order of their times."""

    def mark_redriven(self, stored: StoredDeadLetter, hub: str) -> None:
        """Record that a dead letter was sent to a hub."""


@runtime_checkable
class Discards(Protocol):
    """Sink whose dead letters can be discarded."""

    def discard(self, dead_letters: Iterable[StoredDeadLetter]) -> None:
        """Remove dead letters."""


class HubDeadLetters:
    """Dead letters that a `DeadLetterHub` has sent to a hub.

    A redrive is recorded by an event in the same hub, not by a checkpoint: all events before a
    checkpoint would count as redriven, whether they were selected or not.

    Args:
        hub: the hub; events are read through its consumer group.
        through: another consumer group to read through; see `peek`.
        timeout: seconds for each query, and to wait for the next events.
    """

    def __init__(
        self, hub: HubAddress, *, through: str | None = None, timeout: float = OPERATION_TIMEOUT
    ) -> None:
        self._hub, self._through, self._timeout = hub, through, timeout
        self._producer: EventHubProducerClient | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._producer is not None:
            self._producer.close()

    def __str__(self) -> str:
        return str(self._hub)

    def dead_letters(self) -> list[StoredDeadLetter]:
        """Return the retained dead letters in the order of their times; other events are left out.

        Raises:
            ConfigurationError: there is no such hub, access is refused, or the hub has only events
                that are not dead letters.
            HubUnavailableError: the hub did not answer in time, or refused the readers.
        """
        return through_some_group(self._hub, self._through, self._read)

    def _read(self, hub: HubAddress) -> list[StoredDeadLetter]:
        partitions = [
            each
            for each in partition_properties(hub, timeout=self._timeout).values()
            if not each.is_empty
        ]
        with ThreadPoolExecutor(READERS) as readers:
            read = list(readers.map(lambda each: self._events(hub, each), partitions))
        events = [event for partition in read for event in partition]
        entries = [entry for event in events if (entry := entry_of(event))]
        if events and not entries:
            raise ConfigurationError(
                f"{hub} has events, but no dead letters; name the hub to which DeadLetterHub sends"
            )
        return current_dead_letters(entries)

    def _events(self, hub: HubAddress, partition: PartitionProperties) -> list[EventData]:
        id_, end = partition.partition_id, partition.next_sequence_number
        client = hub.open_receiving_client(id_)
        events: list[EventData] = []
        start = partition.first_sequence_number
        stream = EventStream(client, id_, start, prefetch=PREFETCH, until=end)
        with explained(hub, id_), stream:
            while not events or (events[-1].sequence_number or 0) < end - 1:
                received = stream.next_events(self._timeout)
                if received is None:
                    raise HubUnavailableError(
                        f"partition {id_} of {hub} delivered nothing for {self._timeout:g} s"
                    )
                events += received
        return events

    def mark_redriven(self, stored: StoredDeadLetter, hub: str) -> None:
        """Record that a dead letter was sent to a hub.

        Raises:
            HubUnavailableError: the hub of dead letters did not accept the record.
        """
        if self._producer is None:
            self._producer = self._hub.open_producer()
        mark = Mark.of(stored.dead_letter, hub).to_event()
        send(self._producer, self._hub, mark, None, self._timeout)


@contextmanager
def open_dead_letters(
    source: str,
    hub_of: Callable[[str], HubAddress],
    *,
    through: str | None = None,
    timeout: float = OPERATION_TIMEOUT,
    unreachable_timeout: float = UNREACHABLE_TIMEOUT,
    option: str = "--from",
) -> Iterator[DeadLetterSource]:
    """Open the dead letters that a text names, and close them at the end.

    Args:
        source: one of `SOURCES`.
        hub_of: returns the hub that a text names.
        through: consumer group to read a hub through; see `peek`.
        timeout: seconds for each call of a table, each query to a hub, and its next events.
        unreachable_timeout: seconds for which a table tries to connect to a server that refuses
            connections or is not known.
        option: which option names them, for errors.

    Raises:
        ConfigurationError: it is none of `SOURCES`, or malformed.
        MissingDriverError: the driver of the database is not installed.
    """
    scheme, slashes, _ = source.partition("://")
    if slashes and scheme_of(source) in SQL.schemes:
        with missing_driver_of(source):
            # Imported here: only a table needs SQLAlchemy.
            from eventhub_checkpoints.sql import DeadLetterTable

        with DeadLetterTable(
            source, timeout=timeout, unreachable_timeout=unreachable_timeout
        ) as table:
            yield table
    elif is_hub(source):
        with HubDeadLetters(hub_of(source), through=through, timeout=timeout) as hub:
            yield hub
    elif slashes and scheme != "file":
        raise ConfigurationError(f"{option} is {quoted(source)}; expected {SOURCES}")
    else:
        yield DeadLetterFile(url2pathname(urlsplit(source).path) if slashes else source)


def is_hub(source: str) -> bool:
    """Return whether a text names a hub, and not a file."""
    if "endpoint=" in source.lower() or ".servicebus." in source:
        return True
    is_name = not any(sign in source for sign in "/\\.:")
    return is_name and not exists(source)


def entry_of(event: EventData) -> DeadLetter | Mark | None:
    """Return the dead letter or the mark that an event is; None if it is neither."""
    for kind in (DeadLetter, Mark):
        with suppress(*MALFORMED):
            return kind.from_event(event)
    return None


@dataclass(frozen=True, slots=True)
class Selection:
    """Choice of dead letters; None and an empty sequence mean all.

    Attributes:
        group: consumer group that could not process them, in any case.
        partition_id: of the hub that they come from.
        since: they failed then or later.
        error: part of the type or the message of the error, in any case.
        ids: beginnings of ids, each of one dead letter.
        is_redriven_included: whether dead letters that were redriven are chosen, too; those that
            `ids` names always are.
    """

    group: str | None = None
    partition_id: str | None = None
    since: datetime | None = None
    error: str | None = None
    ids: Sequence[str] = ()
    is_redriven_included: bool = False

    @property
    def is_all(self) -> bool:
        """Return whether nothing is excluded."""
        return replace(self, is_redriven_included=False) == Selection()

    def choose(self, stored: Sequence[StoredDeadLetter]) -> list[StoredDeadLetter]:
        """Return the chosen dead letters, in the same order.

        Raises:
            ConfigurationError: an id does not identify exactly one dead letter.
        """
        if self.ids:
            named = {dead_letter_by_id(stored, id_).dead_letter.id for id_ in self.ids}
            stored = [each for each in stored if each.dead_letter.id in named]
        return [each for each in stored if self._includes(each)]

    def _includes(self, stored: StoredDeadLetter) -> bool:
        dead_letter = stored.dead_letter
        return (
            (stored.redriven_time is None or self.is_redriven_included or bool(self.ids))
            and (
                self.group is None or dead_letter.scope.consumer_group.lower() == self.group.lower()
            )
            and (self.partition_id is None or dead_letter.partition_id == self.partition_id)
            and (self.since is None or dead_letter.time >= self.since)
            and has(error_of(dead_letter), self.error or "")
        )


def error_of(dead_letter: DeadLetter) -> str:
    """Return type and message of the error, as `Selection.error` is compared with them."""
    return f"{dead_letter.error_type}: {dead_letter.error_message}"


@dataclass(frozen=True, slots=True)
class GroupDeadLetters:
    """Dead letters of a group.

    Attributes:
        shown: the newest of those that were chosen, newest first.
        chosen: number of those that were chosen.
        redriven: number of those that are left out because they were redriven.
        elsewhere: number of dead letters of other groups and hubs.
    """

    shown: Sequence[StoredDeadLetter]
    chosen: int
    redriven: int
    elsewhere: int


def newest_of_group(
    source: DeadLetterSource, scope: Scope, selection: Selection, most: int
) -> GroupDeadLetters:
    """Return the newest dead letters of a group that a selection chooses, `most` at most.

    Raises:
        ConfigurationError: see `Selection.choose`.
        StoreError, HubUnavailableError: the source could not be read.
    """
    stored = source.dead_letters()
    own = [each for each in stored if each.dead_letter.scope.folded == scope.folded]
    chosen = selection.choose(own)
    everything = replace(selection, is_redriven_included=True).choose(own)
    return GroupDeadLetters(
        chosen[::-1][:most],
        len(chosen),
        len(everything) - len(chosen),
        len(stored) - len(own),
    )


def dead_letter_by_id(stored: Sequence[StoredDeadLetter], id_: str) -> StoredDeadLetter:
    """Return the dead letter whose id begins with `id_`.

    Raises:
        ConfigurationError: no dead letter has such an id, or several have.
    """
    matches = [each for each in stored if id_ and each.dead_letter.id.startswith(id_.lower())]
    if len(matches) != 1:
        count = f"{len(matches)} dead letters have" if matches else "no dead letter has"
        lists = f"{as_typed('dead-letters list --all')} shows the ids"
        remedy = "pass more of its digits" if matches else lists
        raise ConfigurationError(f"{count} an id that begins with {quoted(id_)}; {remedy}")
    return matches[0]


def check_origin(dead_letters: Iterable[StoredDeadLetter], hub: HubAddress) -> None:
    """Check that dead letters come from a hub.

    Raises:
        ConfigurationError: one comes from another hub.
    """
    own = hub.scope().folded
    for stored in dead_letters:
        origin = stored.dead_letter.scope
        if origin.folded[:2] != own[:2]:
            raise ConfigurationError(
                f"dead letter {stored.dead_letter.id} comes from {'/'.join(origin[:2])}, and --hub "
                f"names {hub}; name its hub, or pass --to to send it elsewhere"
            )


def to_redrive(
    source: DeadLetterSource, selection: Selection, hub: HubAddress, *, is_elsewhere: bool
) -> list[StoredDeadLetter]:
    """Return the dead letters of a source that are to be sent to a hub.

    Args:
        source: where the dead letters are.
        selection: which of them; those that were redriven only if it includes them.
        hub: where they are sent.
        is_elsewhere: whether it may be another hub than the one they come from.

    Raises:
        ConfigurationError: one comes from another hub, or was redriven and is named by its id; see
            also `Selection.choose`.
        StoreError, HubUnavailableError: the source could not be read.
    """
    chosen = selection.choose(source.dead_letters())
    if not is_elsewhere:
        check_origin(chosen, hub)
    for stored in chosen:
        if stored.redriven_time is not None and not selection.is_redriven_included:
            raise ConfigurationError(
                f"dead letter {stored.dead_letter.id} was redriven to {stored.redriven_to} at "
                f"{stored.redriven_time:%Y-%m-%dT%H:%M:%SZ}; pass --again to send it again"
            )
    return chosen


def to_discard(source: DeadLetterSource, selection: Selection) -> list[StoredDeadLetter]:
    """Return the chosen dead letters of a source from which they can be removed.

    Raises:
        ConfigurationError: the source is a hub; see also `Selection.choose`.
        StoreError: the source failed.
    """
    that_discards(source)
    return selection.choose(source.dead_letters())


def that_discards(source: DeadLetterSource) -> Discards:
    """Return a source from which dead letters can be removed.

    Raises:
        ConfigurationError: it is a hub.
    """
    if not isinstance(source, Discards):
        raise ConfigurationError(
            f"the dead letters in event hub {source} expire with its retention, and cannot be "
            "discarded; name a file or a table"
        )
    return source


def discard(
    source: DeadLetterSource, dead_letters: Iterable[StoredDeadLetter]
) -> Iterator[StoredDeadLetter]:
    """Remove dead letters one by one; yield each that was removed.

    Raises:
        ConfigurationError: the source is a hub.
        StoreError: the source failed; those before are removed.
    """
    discarding = that_discards(source)
    for stored in dead_letters:
        discarding.discard([stored])
        yield stored


def redrive(
    source: DeadLetterSource,
    dead_letters: Iterable[StoredDeadLetter],
    hub: HubAddress,
    *,
    timeout: float = OPERATION_TIMEOUT,
) -> Iterator[StoredDeadLetter]:
    """Send dead letters to a hub and record each; yield each dead letter that is sent and recorded.

    Each event keeps body, properties and partition key. Its origin and the error are in application
    properties that begin with `dead-letter-`. If the process is killed between sending and
    recording, the dead letter is sent again by the next call.

    Args:
        source: where the dead letters are.
        dead_letters: some of its dead letters.
        hub: where they are sent.
        timeout: seconds to send one of them.

    Raises:
        HubUnavailableError: the hub did not accept a dead letter; those before it are sent and
            recorded.
        StoreError: a dead letter was sent, and this could not be recorded.
    """
    with hub.open_producer() as producer:
        for stored in dead_letters:
            dead_letter = replace(stored.dead_letter, redrives=stored.dead_letter.redrives + 1)
            send(producer, hub, dead_letter.to_event(), dead_letter.partition_key, timeout)
            try:
                source.mark_redriven(stored, str(hub))
            except CheckpointStoreError as error:
                raise StoreError(
                    f"dead letter {dead_letter.id} was sent to {hub}, but this could not be "
                    f"recorded, so that the next redrive sends it again: {error}"
                ) from error
            yield stored


def send(
    producer: EventHubProducerClient,
    hub: HubAddress,
    event: EventData,
    partition_key: str | None,
    timeout: float,
) -> None:
    """Send an event.

    Raises:
        HubUnavailableError: the hub did not accept it.
    """
    try:
        producer.send_batch([event], partition_key=partition_key or None, timeout=timeout)
    except (EventHubError, ValueError, OSError) as error:
        raise HubUnavailableError(
            f"{hub} did not accept the event: {masked(reason(error))}"
        ) from error
