"""Where the partitions of a processor start that go on from no saved position."""

from collections.abc import Mapping
from typing import Any

from azure.eventhub.exceptions import EventHubError

from eventhub_checkpoints._shared._async.client_check import called
from eventhub_checkpoints._shared.client_errors import explanation
from eventhub_checkpoints._shared.client_internals import scope_of
from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.start_position import client_position
from eventhub_checkpoints.processing.options import Options, require_start


class Starts:
    """The start positions that were given, as a value, by partition, or by a function.

    Args:
        options: with them.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._asked: dict[str, Any] = {}

    def of(self, partition_id: str) -> Any:
        """The start position of a partition; None: the beginning."""
        return self._asked.get(partition_id, self._options.start_of(partition_id))

    def has(self, partition_id: str) -> bool:
        """Whether one was given for a partition."""
        return self.of(partition_id) is not None

    async def ask(self, client: Any) -> Any:
        """What the client is given as `starting_position`.

        Raises:
            ConfigurationError: one names no partition, or the function gave no start position.
                Or they are by partition, and there is no such hub, or it refuses access.
            HubUnavailableError: they are by partition, and the hub does not answer.
        """
        given = self._options.starting_position
        if not callable(given) and not isinstance(given, Mapping):
            return client_position(given)
        try:
            partition_ids = await client.get_partition_ids()
        except EventHubError as error:
            raise explanation(error, scope_of(client)) from error
        self._options.check_partitions(partition_ids)
        for partition_id in partition_ids:
            if isinstance(given, Mapping):
                found = given.get(partition_id)
            else:
                found = await called(given, partition_id)
            require_start(f"starting_position of partition {quoted(partition_id)}", found)
            self._asked[partition_id] = found
        return {key: client_position(start) for key, start in self._asked.items()}
