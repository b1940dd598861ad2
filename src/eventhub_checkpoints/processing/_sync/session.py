# Derived from _async/session.py by tools/unasync.py; edit that file.
"""One claim of one partition: the events that are being processed, and how many may be."""

import sys
import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from eventhub_checkpoints._shared.client_internals import is_client_closed
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.processing._sync.checkpoint_writer import Saver, log
from eventhub_checkpoints.processing._sync.saved_position import Saved
from eventhub_checkpoints.processing.policy import Policy
from eventhub_checkpoints.processing.statistics import Tally
from eventhub_checkpoints.processing.watermark import Ticket, Watermark
from eventhub_checkpoints.processing.write_state import Since

PATIENCE = 10.0
"""Seconds after which one who waits for room says so."""
LOOKING = 0.2
"""Seconds after which one who waits for room looks whether its client was closed."""


class Claim(Saved[Watermark]):
    """The events of a partition from when it was opened until it is closed.

    Args:
        names: the keys of its checkpoint besides the position.
        policy: when to save.
        tally: where its writes are counted.
        saver: who writes what is due of it.
        max_pending: events that may be begun and not passed.
        max_unsaved: events that may be begun and not saved; None: any number.

    Attributes:
        closer: what closes it, an aio client's task; it releases the partition then.
        begun: tickets that are neither done nor failed, by the id of their event.
        is_announced: whether the client has said that the partition is open; a sync client may
            deliver events before.
        began_at: when it began.
        ends_by: when it will have ended, since it is being closed; before that, None.
        key: its names, as the client spells them.
    """

    __slots__ = (
        *("_draining", "_max_unsaved", "began_at", "begun", "closer", "ends_by", "is_announced"),
        *("key", "saver", "watermark"),
    )

    def __init__(
        self,
        names: Mapping[str, str],
        policy: Policy,
        tally: Tally,
        saver: Saver,
        max_pending: int,
        max_unsaved: int | None,
    ) -> None:
        self.watermark = Watermark(max_pending)
        self.key = tuple(names.values())
        super().__init__(names, self.watermark, policy, tally)
        self.saver = saver
        self.is_announced = False
        self.began_at = time.monotonic()
        self.begun: dict[int, Ticket] = {}
        self.closer: object = None
        self.ends_by: float | None = None
        self._draining = Since()
        self._max_unsaved = sys.maxsize if max_unsaved is None else max_unsaved

    @property
    def scope(self) -> tuple[str, ...]:
        """The namespace, hub and consumer group."""
        return self.key[:-1]

    @property
    def pending(self) -> int:
        return self.watermark.pending

    @property
    def has_room(self) -> bool:
        """Whether one more event may be begun."""
        is_full = self.watermark.is_full or self.unsaved >= self._max_unsaved
        return self.is_over or not (is_full or self.is_stuck)

    @property
    def is_stuck(self) -> bool:
        """Whether an event has failed that all others wait for."""
        unpassed = self.watermark.unpassed
        return bool(unpassed) and unpassed[0].has_failed

    def wait_for_room(self) -> None:
        """Wait until one more event may be begun.

        Raises:
            CheckpointStoreError: an event has failed, and nothing behind it can be saved; or the
                client was closed.
        """
        warns_at = time.monotonic() + PATIENCE
        while not self.until(lambda: self.has_room or self.is_stuck, LOOKING):
            if is_client_closed():
                raise CheckpointStoreError(
                    f"partition {self.partition_id}: the client was closed while an event waited "
                    "until others were finished and saved; it is read again"
                )
            if time.monotonic() >= warns_at:
                warns_at += PATIENCE
                self._warn_full()
        if not self.has_room:
            raise self.given_up()

    def _warn_full(self) -> None:
        log.warning(
            "partition %s: no event is begun while %d are not finished and %d not saved",
            self.partition_id,
            self.pending,
            self.unsaved,
        )

    def given_up(self) -> CheckpointStoreError:
        """What leaves the handler, so that the client closes the partition and claims it anew."""
        return CheckpointStoreError(
            f"partition {self.partition_id}: an event was given up, and nothing behind it can be "
            "saved; it is read again when the partition is claimed anew"
        )

    def enter(self, ticket: Ticket, event: Any) -> bool:
        """Begin an event, if there is room; whether there was."""
        with self.guard:
            watermark = self.watermark
            pending, unpassed = watermark.pending, watermark.unpassed
            unsaved = watermark.count + pending - self.progress.saved_count
            # As `has_room` has it; spelled out, for it is asked for every event.
            is_full = pending >= watermark.max_pending or unsaved >= self._max_unsaved
            if (is_full or (unpassed and unpassed[0].has_failed)) and not self.is_over:
                return False
            if not unsaved:
                self.behind_since = time.monotonic()
            watermark.enter(ticket)
            self.begun[id(event)] = ticket
        return True

    def leave(self, ticket: Ticket, event: Any) -> bool:
        """Finish an event; whether a save may be due."""
        with self.guard:
            self.begun.pop(id(event), None)
            ticket.is_done = True
            watermark = self.watermark
            unpassed = watermark.unpassed
            if not unpassed or unpassed[0] is not ticket:
                return False
            watermark.move()
            return watermark.count >= self.progress.wake_count

    def forget(self, event: Any) -> None:
        """Find its ticket no more."""
        self.begun.pop(id(event), None)

    def draining_since(self) -> float:
        """Return when the events that are in work now began to be waited for."""
        with self.guard:
            begun = self.watermark.count + self.watermark.pending
            return self._draining.of(begun, time.monotonic())

    def is_settled(self) -> bool:
        """Whether waiting will not move what may be saved."""
        return self.watermark.is_settled


CLAIM_HERE: ContextVar[Claim | None] = ContextVar("eventhub_checkpoints_claim", default=None)
"""The claim that the running task, or one that it descends from, belongs to.

An aio client opens a partition in the task that its handlers descend from. So a handler that still
runs when its partition was claimed anew, where receiving had failed, is known by it.
Source: azure-eventhub 5.15.1, `aio/_eventprocessor/event_processor.py`, `EventProcessor._receive`.
"""
