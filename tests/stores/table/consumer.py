"""A consumer with our store for tables that does what `consumer.js` does."""

import json
import sys
from typing import Any

from azure.eventhub import EventHubConsumerClient

from eventhub_checkpoints.table import TableCheckpointStore


def printed(**line: Any) -> None:
    """Print a line of JSON."""
    print(json.dumps(line), flush=True)


def process(context: Any, events: list[Any]) -> None:
    """Print events, and save."""
    for event in events:
        printed(event=[context.partition_id, event.sequence_number])
    if events:
        context.update_checkpoint(events[-1])
        printed(saved=[context.partition_id, events[-1].sequence_number])


def main(connection: str, hub: str, url: str, table: str, account: str, *rest: str) -> None:
    """Consume until the process is killed."""
    key, expiry = rest
    client = EventHubConsumerClient.from_connection_string(
        connection,
        consumer_group="$Default",
        eventhub_name=hub,
        checkpoint_store=TableCheckpointStore(
            url, table, {"account_name": account, "account_key": key}
        ),
        load_balancing_interval=0.4,
        load_balancing_strategy="greedy",
        partition_ownership_expiration_interval=float(expiry),
    )
    client.receive_batch(
        process,
        max_batch_size=5,
        max_wait_time=1,
        starting_position="-1",
        on_error=lambda context, error: printed(error=str(error)),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
