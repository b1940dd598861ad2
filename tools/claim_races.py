"""Races of many Blob stores, sync and aio, for the first claim of one partition."""

import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from azure.storage.blob import ContainerClient

from eventhub_checkpoints.aio.blob import BlobCheckpointStore as AioBlobCheckpointStore
from eventhub_checkpoints.blob import BlobCheckpointStore
from eventhub_checkpoints.conformance.clients import Client, Loop, Row
from eventhub_checkpoints.records import Scope

RACERS = 16
BARRIER_SECONDS = 60.0
HANDICAP_SECONDS = 0.03
"""At most, of a sync store: without it an aio store, which is slower to begin, never wins."""
SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")


class RaceError(AssertionError):
    """A race that had no winner, or more than one."""


@contextmanager
def fresh_container(connection_string: str) -> Iterator[str]:
    """The name of a container that is deleted in the end."""
    name = f"races-{uuid.uuid4().hex}"
    with ContainerClient.from_connection_string(connection_string, name) as container:
        container.create_container()
        try:
            yield name
        finally:
            container.delete_container()


@contextmanager
def racers(connection_string: str, container: str) -> Iterator[list[Client]]:
    """As many stores as race, every second one an aio store, each with connections of its own."""
    with ExitStack() as opened:
        loop = opened.enter_context(Loop())
        clients = []
        for number in range(RACERS):
            kind = AioBlobCheckpointStore if number % 2 else BlobCheckpointStore
            store = kind.from_connection_string(connection_string, container)
            clients.append(Client(store, SCOPE, loop))
            opened.callback(clients[-1].close)
        yield clients


def is_aio(client: Client) -> bool:
    """Whether the store is for asyncio."""
    return isinstance(client.store, AioBlobCheckpointStore)


def race(clients: Sequence[Client], partition_id: str, handicap: float) -> list[Row | None]:
    """All claim the partition at the same moment; what each was given, in their order."""
    barrier = threading.Barrier(len(clients))

    def claim(client: Client) -> Row | None:
        barrier.wait(BARRIER_SECONDS)
        time.sleep(0.0 if is_aio(client) else handicap)
        return client.claim(partition_id, f"owner-{clients.index(client)}")

    with ThreadPoolExecutor(len(clients)) as pool:
        return list(pool.map(claim, clients))


def run_races(connection_string: str, seed: int, rounds: int) -> Counter[str]:
    """Run so many races, each for a partition of its own; who won, by colour.

    Raises:
        RaceError: a race did not have exactly one winner, or storage does not name the winner.
    """
    order = random.Random(seed)
    seen: Counter[str] = Counter()
    with (
        fresh_container(connection_string) as container,
        racers(connection_string, container) as clients,
    ):
        for number in range(rounds):
            started = order.sample(clients, len(clients))
            given = race(started, str(number), order.uniform(0.0, HANDICAP_SECONDS))
            seen[judged(started, number, given)] += 1
    return seen


def judged(clients: Sequence[Client], number: int, given: Sequence[Row | None]) -> str:
    """The colour of the one winner."""
    winners = [row for row in given if row is not None]
    if len(winners) != 1:
        raise RaceError(f"race {number}: {len(winners)} of {len(clients)} have won")
    stored = clients[0].row(str(number))
    if stored is None or stored["owner_id"] != winners[0]["owner_id"]:
        raise RaceError(f"race {number}: {winners[0]} has won, and {stored} is stored")
    winner = next(client for client, row in zip(clients, given, strict=True) if row is not None)
    return "won by aio stores" if is_aio(winner) else "won by sync stores"
