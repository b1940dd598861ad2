"""Rules about checkpoints: those that the hub does not have, and incomplete ones."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from eventhub_checkpoints._shared.offset_words import Meaning, is_taken, meaning_of
from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints._shared.start_position import is_of_another_form, refused_by_hub
from eventhub_checkpoints._shared.texts import partitions, some
from eventhub_checkpoints.operations.doctor.finding import (
    TARGET,
    Finding,
    GroupSnapshot,
    Limits,
    Severity,
)
from eventhub_checkpoints.operations.groups import Row, in_order
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.receive.address import PartitionProperties


class Defect(NamedTuple):
    """Defect of a checkpoint.

    Attributes:
        code: of the finding.
        evidence: what the partitions have.
        verb: command that mends it.
    """

    code: str
    evidence: str
    verb: str


DEFECTS = (
    Defect(
        "checkpoint_ahead",
        "with a checkpoint ahead of the newest event, as after a hub was created anew",
        "reset --to-earliest",
    ),
    Defect(
        "checkpoint_expired",
        "with events that expired before they were processed",
        "reset --to-earliest",
    ),
    Defect(
        "never_processed",
        "with a checkpoint that was copied from a lease of which nothing was processed, so that "
        "event 0 is skipped",
        "reset --to-earliest",
    ),
    Defect(
        "wrong_offset",
        "with a checkpoint whose offset is not that of its event",
        "reset --to-current",
    ),
    Defect(
        "offset_refused",
        "with a checkpoint without a sequence number, whose offset the hub does not have: nothing "
        "is read",
        "reset --to-earliest",
    ),
)
"""Errors of checkpoints, in the order in which they are shown."""


def positions(snapshot: GroupSnapshot, _limits: Limits) -> Iterator[Finding]:
    """Find checkpoints that the hub does not have."""
    if snapshot.group is None or snapshot.properties is None:
        return
    hub_offset = some_offset(snapshot.properties.values())
    closed: list[str] = []
    details: dict[str, list[tuple[str, str]]] = {}
    for id_ in in_order(snapshot.group.checkpoints.keys() & snapshot.properties.keys()):
        position = Position.of(snapshot.group.checkpoints[id_])
        if position.is_closed:
            closed.append(id_)
        elif defect := defect_of(
            position, snapshot.properties[id_], hub_offset, snapshot.following.get(id_)
        ):
            code, detail = defect
            details.setdefault(code, []).append((id_, detail))
    if closed:
        yield Finding(
            "checkpoint_closed",
            Severity.WARNING,
            f"{partitions(closed)} without a position here, because it was moved to or from "
            f"another store: {some(closed)}",
            f"stop the consumers of this store; {as_typed('move')} continues a move that was "
            "interrupted",
            closed,
        )
    for each in DEFECTS:
        if each.code not in details:
            continue
        ids = [id_ for id_, _ in details[each.code]]
        named = some(f"{id_} ({detail})" for id_, detail in details[each.code])
        yield Finding(
            each.code,
            Severity.ERROR,
            f"{partitions(ids)} {each.evidence}: {named}",
            as_typed(f"{each.verb} --partitions {','.join(ids)}{TARGET}"),
            ids,
        )


def some_offset(properties: Iterable[PartitionProperties]) -> str:
    """Return an offset of the hub, which shows the form of all of them; `""` if it has none."""
    known = (each.last_enqueued_offset for each in properties)
    return next((offset for offset in known if meaning_of(offset) is None), "")


def defect_of(
    position: Position,
    here: PartitionProperties,
    hub_offset: str = "",
    following: int | None = None,
) -> tuple[str, str] | None:
    """Return the code of a checkpoint's defect, and the evidence; None if it has none.

    Args:
        position: not a closed one.
        here: of the partition.
        hub_offset: of any partition of the hub; the partition may have none to compare with.
        following: sequence number of the first event after the offset; None if it is unknown.
    """
    number, offset, last = position.sequence_number, position.offset, here.next_sequence_number - 1
    if number is None:
        if problem := refusal(offset, here, hub_offset):
            return "offset_refused", problem
    elif number > last:
        return "checkpoint_ahead", f"{number}, newest {last}"
    elif number < here.first_sequence_number - 1:
        return "checkpoint_expired", f"{here.first_sequence_number - 1 - number} events lost"
    if is_unread(position, here):
        return "never_processed", f"offset {offset}"
    if number is None:
        return None
    if number == last and is_another_offset(offset, here):
        return "wrong_offset", f"{offset}, expected {here.last_enqueued_offset}"
    if meaning_of(offset) is None and (problem := refusal(offset, here, hub_offset)):
        return "wrong_offset", problem
    if number < last and offset == here.last_enqueued_offset:
        return "wrong_offset", f"offset {offset} is that of event {last}, and not of {number}"
    if following is not None and following != number + 1:
        return (
            "wrong_offset",
            f"event {following} follows offset {offset}, and not event {number + 1}",
        )
    return None


def needs_following(row: Row, here: PartitionProperties, hub_offset: str) -> bool:
    """Return whether only the hub can tell if an offset is that of a checkpoint's event."""
    position = Position.of(row)
    number = position.sequence_number
    return (
        number is not None
        and not position.is_closed
        and meaning_of(position.offset) is None
        and number < here.next_sequence_number - 1
        and defect_of(position, here, hub_offset) is None
    )


def is_another_offset(offset: str, properties: PartitionProperties) -> bool:
    """Return whether an offset is known not to be that of the newest event."""
    newest = properties.last_enqueued_offset
    is_known = not properties.is_empty and meaning_of(newest) is None
    return is_known and meaning_of(offset) is None and offset != newest


def is_unread(position: Position, properties: PartitionProperties) -> bool:
    """Return whether a checkpoint was copied from a lease that never processed anything.

    Consumers would go on after event 0, or after the newest one. Beside `"-1"`, 0 may be right: so
    `ehcp reset` stores the beginning of a partition whose first retained event is 1.
    """
    number, meaning = position.sequence_number, meaning_of(position.offset)
    if properties.is_empty or meaning not in (Meaning.START, Meaning.END):
        return False
    if number == 0:
        return properties.first_sequence_number == 0
    return meaning is Meaning.END and (number is None or number < 0)


def refusal(offset: str, properties: PartitionProperties, hub_offset: str = "") -> str | None:
    """Explain why the partition refuses an offset; None if it may accept it, or there is none."""
    newest = properties.last_enqueued_offset
    own = hub_offset if meaning_of(newest) is not None else newest
    if is_of_another_form(offset, own):
        return f"offset {offset}, and those of the hub are decimal, as {own}"
    return refused_by_hub(offset, newest, properties.next_sequence_number - 1)


def no_such_partition(snapshot: GroupSnapshot, _limits: Limits) -> Iterator[Finding]:
    """Find rows of partitions that the hub does not have."""
    if snapshot.group is None or snapshot.properties is None:
        return
    missing = in_order(set(snapshot.group.partition_ids) - snapshot.properties.keys())
    if not missing:
        return
    severity = Severity.WARNING
    remedy = f"{as_typed('doctor --fix')}{TARGET} deletes their rows"
    if snapshot.group.has_live_owner(missing):
        severity = Severity.ERROR
        remedy = "stop their consumers: they read another hub with this store"
    evidence = f"{partitions(missing)} with rows that the hub does not have: {some(missing)}"
    yield Finding("no_such_partition", severity, evidence, remedy, missing)


def incomplete_records(snapshot: GroupSnapshot, _limits: Limits) -> Iterator[Finding]:
    """Find checkpoints without an offset, or without a sequence number."""
    if snapshot.group is None:
        return
    rows = snapshot.group.checkpoints
    properties = snapshot.properties or {}
    no_offset = in_order(id_ for id_, row in rows.items() if needs_offset(row, properties.get(id_)))
    if no_offset:
        # A hub takes such a word, so official clients start at one end of the partition.
        elsewhere = [id_ for id_ in no_offset if is_end_word(rows[id_])]
        yield Finding(
            "no_offset",
            Severity.ERROR if elsewhere else Severity.WARNING,
            f"{partitions(no_offset)} with a checkpoint without an offset, which the official "
            f"Python store cannot resume from: {some(no_offset)}"
            + (
                f"; of {some(elsewhere)} every official client starts at the beginning or the end "
                "of the partition instead"
                if elsewhere
                else ""
            ),
            f"{as_typed('doctor --fix')}{TARGET} adds it where nobody is consuming; the next "
            "checkpoint of a consumer has one",
            no_offset,
        )
    no_number = in_order(id_ for id_, row in rows.items() if needs_number(row, properties.get(id_)))
    if no_number:
        yield Finding(
            "no_sequence_number",
            Severity.WARNING,
            f"{partitions(no_number)} with a checkpoint without a sequence number, by which KEDA "
            f"fails and lag is unknown: {some(no_number)}",
            f"let a consumer store a checkpoint; {as_typed('peek')} {no_number[0]}{TARGET} shows "
            "where it would go on",
            no_number,
        )


def is_end_word(row: Row) -> bool:
    """Return whether the offset of a checkpoint is a word that a hub takes for one of its ends."""
    offset = Position.of(row).offset
    return meaning_of(offset) in (Meaning.START, Meaning.END) and is_taken(offset)


def needs_offset(row: Row, properties: PartitionProperties | None) -> bool:
    """Return whether a checkpoint has a sequence number only, and no word that says the same."""
    position = Position.of(row)
    number, meaning = position.sequence_number, meaning_of(position.offset)
    if number is None or meaning is None:
        return False
    if meaning is Meaning.UNKNOWN or properties is None:
        return meaning is Meaning.UNKNOWN
    is_same = meaning is Meaning.START and number < properties.first_sequence_number
    return not is_same and not is_unread(position, properties)


def needs_number(row: Row, properties: PartitionProperties | None) -> bool:
    """Return whether a checkpoint has an offset only, from which a consumer can go on."""
    position = Position.of(row)
    if position.sequence_number is not None:
        return False
    if properties is None:
        return True
    return not is_unread(position, properties) and not refusal(position.offset, properties)
