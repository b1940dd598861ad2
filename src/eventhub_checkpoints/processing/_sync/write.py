# Derived from _async/write.py by tools/unasync.py; edit that file.
"""One checkpoint written beside the caller, and what becomes of it."""

import logging
import random
import time
from collections.abc import Callable
from typing import Any

from azure.eventhub import CheckpointStore

from eventhub_checkpoints._shared._sync.client_check import check_store
from eventhub_checkpoints._shared._sync.compat import within
from eventhub_checkpoints._shared.settings import is_callback, require
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    StaleCheckpointError,
    StoreUnavailableError,
)
from eventhub_checkpoints.processing._sync.saved_position import Saved
from eventhub_checkpoints.processing.policy import Due
from eventhub_checkpoints.processing.watermark import Position

log = logging.getLogger("eventhub_checkpoints")

OnError = Callable[[str, Exception], object]


class Writer:
    """Writes positions, and never raises.

    Args:
        store: where checkpoints go.
        on_error: is given the partition and what went wrong.
        settled: called when a write has ended.

    Attributes:
        goes_forward_only: whether the store refuses to go back.
    """

    def __init__(
        self, store: CheckpointStore, on_error: OnError | None, settled: Callable[[], None]
    ) -> None:
        check_store(store)
        require("on_error", on_error, is_callback(on_error), "None, or a plain function")
        self.goes_forward_only = bool(getattr(store, "forward_only", False))
        self._store = store
        # A store of another kind may hand on what it is given to its driver.
        self._stale = {"on_stale": "raise"} if self.goes_forward_only else {}
        self._on_error = on_error
        self._settled = settled

    def write(self, one: Saved[Any], due: Due, seconds: float) -> None:
        """Write what is due of a partition, within so many seconds."""
        # A claim that is over may be another client's by now.
        if one.is_over:
            with one.guard:
                one.progress.was_dropped()
            one.changed()
            return
        # What was cut off may have been stored all the same: it is written again.
        error: Exception | None = TimeoutError("the write was cut off")
        is_written = False
        try:
            is_written = within(seconds, self._save, one, due.position)
            error = None
        except Exception as raised:
            is_silence = isinstance(raised, TimeoutError) and not str(raised)
            error = TimeoutError(f"no answer within {seconds:g} s") if is_silence else raised
        finally:
            self._settle(one, error, is_written)
        if error is not None:
            self.report(one.partition_id, error)

    def _save(self, one: Saved[Any], position: Position) -> bool:
        """Store a position, unless the claim before has; whether it was stored."""
        if one.is_covered(position):
            return False
        self.put(one, position, **self._stale)
        return True

    def was_not_begun(self, one: Saved[Any], error: Exception) -> None:
        """Note that a write could not even be begun."""
        self._settle(one, error)
        self.report(one.partition_id, error)

    def _settle(self, one: Saved[Any], error: Exception | None, is_written: bool = False) -> None:
        try:
            with one.guard:
                now = time.monotonic()
                if error is None:
                    (one.progress.was_saved if is_written else one.progress.was_covered)(now)
                elif isinstance(error, StaleCheckpointError):
                    one.progress.was_refused(now)
                else:
                    for_good = isinstance(error, CheckpointStoreError) and not isinstance(
                        error, StoreUnavailableError
                    )
                    one.progress.has_failed(now, random.random(), for_good=for_good)
        except Exception as raised:
            self.broke(one, raised)
        one.changed()
        self._settled()

    def broke(self, one: Saved[Any], error: Exception) -> None:
        """Note that a policy raised; the other partitions are looked after all the same."""
        one.is_broken = True
        log.error("the policy of partition %s raised", one.partition_id, exc_info=error)
        self._tell(one.partition_id, error)

    def put(self, one: Saved[Any], position: Position, **kwargs: Any) -> None:
        """Store a position; raise what the store raises.

        Args:
            one: the partition.
            position: any.
            **kwargs: what the store is given besides.
        """
        row: dict[str, Any] = {
            **one.names,
            "offset": position.offset,
            "sequence_number": position.sequence_number,
        }
        self._store.update_checkpoint(row, **kwargs)

    def report(self, partition_id: str, error: Exception) -> None:
        """Say that a write went wrong; nobody is interrupted by it."""
        log.warning("checkpoint of partition %s: %s", partition_id, str(error) or repr(error))
        self._tell(partition_id, error)

    def _tell(self, partition_id: str, error: Exception) -> None:
        if self._on_error is None:
            return
        try:
            self._on_error(partition_id, error)
        except Exception:
            log.exception("on_error of partition %s raised", partition_id)
