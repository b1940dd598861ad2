"""Sinks of dead letters for `EventProcessor(on_poison=...)`: a file, and another hub."""

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from azure.eventhub import EventData
from azure.eventhub.aio import EventHubProducerClient, PartitionContext
from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints._shared._async.client_check import ClosingContext
from eventhub_checkpoints._shared._async.compat import in_thread
from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.connection_string import ConnectionString
from eventhub_checkpoints._shared.error_messages import message_of
from eventhub_checkpoints._shared.paths import is_folder
from eventhub_checkpoints._shared.pickling import OfOneProcess
from eventhub_checkpoints._shared.secrets import holds_secret
from eventhub_checkpoints._shared.settings import name_of, require, require_text, require_type
from eventhub_checkpoints.dead_letters.dead_letter import (
    DeadLetter,
    Mark,
    StoredDeadLetter,
    all_stored,
    checked_stored,
    current_dead_letters,
)
from eventhub_checkpoints.dead_letters.log_file import append_line, read_lines
from eventhub_checkpoints.errors import HubUnavailableError

log = logging.getLogger("eventhub_checkpoints")


class DeadLetterFile:
    """Appends dead letters to a file of JSON lines.

    Several processes of one machine may use the same file. When the call returns, the dead letter
    is on the disk.

    Args:
        path: the file; it is created with the first dead letter, readable by its owner only.

    Raises:
        ConfigurationError: `path` is not the path of a file, or its folder does not exist.
    """

    @with_checked_arguments
    def __init__(self, path: str | os.PathLike[str]) -> None:
        expected = "the path of a file in a folder that exists"
        is_path = isinstance(path, str | os.PathLike) and str(path) and not holds_secret(str(path))
        require("path", path, bool(is_path), expected)
        self._path = Path(path).absolute()
        is_possible = is_folder(self._path.parent) and not is_folder(self._path)
        require("path", str(path), is_possible, expected)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._path)!r})"

    async def __call__(
        self, context: PartitionContext, event: EventData, error: BaseException
    ) -> None:
        """Store an event that could not be processed.

        Raises:
            StoreError: it could not be written.
        """
        dead_letter = DeadLetter.of(context, event, error)
        await in_thread(append_line, self._path, dead_letter.as_dict())

    async def dead_letters(self) -> list[StoredDeadLetter]:
        """Return the dead letters that are not discarded, in the order of their times.

        Lines that are no dead letters are logged.

        Raises:
            ConfigurationError: the file does not exist, or has no dead letter.
            StoreError: it could not be read.
        """
        entries, others = await in_thread(read_lines, self._path)
        if others:
            log.warning("%s: no dead letter in line %s", self._path, ", ".join(map(str, others)))
        return current_dead_letters(entries)

    async def mark_redriven(self, stored: StoredDeadLetter, hub: str) -> None:
        """Record that a dead letter was sent to a hub.

        Raises:
            StoreError: it could not be written.
        """
        require_text("hub", hub, "the name of the hub that it was sent to")
        mark = Mark.of(checked_stored(stored).dead_letter, hub)
        await in_thread(append_line, self._path, mark.as_dict())

    async def discard(self, dead_letters: Iterable[StoredDeadLetter]) -> None:
        """Hide dead letters: their lines stay, as other processes may be appending to the file.

        Raises:
            StoreError: it could not be written.
        """
        for stored in all_stored(dead_letters):
            mark = Mark.of(stored.dead_letter, None)
            await in_thread(append_line, self._path, mark.as_dict())


class DeadLetterHub(
    OfOneProcess,
    ClosingContext,
    pickle_instead="pass its connection string, and create it in the other process",
):
    """Sends dead letters to another hub.

    Args:
        client: producer of that hub; it is not closed.

    Raises:
        ConfigurationError: it is not a producer of this variant.
    """

    @with_checked_arguments
    def __init__(self, client: EventHubProducerClient) -> None:
        require_type(
            "client",
            client,
            isinstance(client, EventHubProducerClient),
            f"an {name_of(EventHubProducerClient)}, or use DeadLetterHub.from_connection_string",
        )
        self._client = client
        self._is_own = False

    @classmethod
    def from_connection_string(cls, conn_str: str, **kwargs: Any) -> Self:
        """Create a sink with its own client, which is closed with it.

        Args:
            conn_str: of the hub, or of its namespace with `eventhub_name`.
            **kwargs: of `EventHubProducerClient.from_connection_string`.

        Raises:
            ConfigurationError: the connection string is malformed, or names no hub.
        """
        ConnectionString.of_hub(conn_str, kwargs.get("eventhub_name"), "conn_str")
        sink = cls(EventHubProducerClient.from_connection_string(conn_str, **kwargs))
        sink._is_own = True
        return sink

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._client.eventhub_name!r})"

    async def __call__(
        self, context: PartitionContext, event: EventData, error: BaseException
    ) -> None:
        """Send an event that could not be processed, under its partition key.

        Raises:
            HubUnavailableError: it could not be sent, for example because it is too large with
                what is added.
        """
        dead_letter = DeadLetter.of(context, event, error)
        try:
            await self._client.send_batch(
                [dead_letter.to_event()], partition_key=dead_letter.partition_key or None
            )
        except (EventHubError, ValueError, OSError) as failure:
            raise HubUnavailableError(
                f"a dead letter could not be sent to hub "
                f"{self._client.eventhub_name}: {message_of(failure)}"
            ) from failure

    async def close(self) -> None:
        """Close the client if it was created here."""
        if self._is_own:
            await self._client.close()
