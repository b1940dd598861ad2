"""How the demo ends: the table, the verdict, and what to try where the servers are kept."""

import signal
import sys
from collections.abc import Iterator, Sequence

import typer

from eventhub_checkpoints.cli.demo.place import HUB_VARIABLE, STORE_VARIABLE
from eventhub_checkpoints.cli.demo.screen import Screen
from eventhub_checkpoints.cli.demo.servers import Servers
from eventhub_checkpoints.cli.demo.signals import Stopped
from eventhub_checkpoints.cli.demo.verdict import PartitionOutcome, broken_promises
from eventhub_checkpoints.registry import shown


def report(screen: Screen, outcomes: Sequence[PartitionOutcome]) -> int:
    """Show the table and say whether every promise was kept; return the exit status."""
    screen.results(outcomes)
    broken = broken_promises(outcomes)
    if broken:
        typer.echo("\n".join(["The demo has FAILED:", *broken]), err=True)
        return 1
    twice = sum(one.twice for one in outcomes)
    read = sum(len(one.read_by_spark) for one in outcomes)
    screen.say(
        f"Nothing was lost. {twice} events were processed twice: they were not saved yet when A "
        "was killed,\nor when a partition went from one consumer to the other.\n"
        f"Spark read the {read} events after the checkpoints, no other one and none twice, and "
        "left its\nown progress in the store: a consumer that came after it had nothing to read."
    )
    screen.step("done")
    return 0


def keep_up(screen: Screen, servers: Servers) -> None:
    """Say what can be tried, and wait for Ctrl-C."""
    screen.say("The hub and the checkpoints stay until Ctrl-C. In another terminal:")
    for line in what_to_try(servers):
        screen.say(f"  {line}")
    try:
        while True:
            signal.pause()
    except Stopped:
        # What the user was asked for.
        screen.say("stopping")


def what_to_try(servers: Servers) -> Iterator[str]:
    """Commands for a shell, without a secret of the user's."""
    # In full, for this environment may not be the one of the other terminal.
    program = f"{sys.executable} -m eventhub_checkpoints"
    place, storage = servers.place, servers.storage
    yield f"export {HUB_VARIABLE}='{place.connection_string}'"
    # What is cut off may be a password.
    is_whole = shown(place.store_url) == place.store_url
    told = f"'{place.store_url}'" if is_whole else "...  # what you gave as --store"
    yield f"export {STORE_VARIABLE}={told}"
    yield f"{program}.cli.demo.publisher  # sends 100 events more"
    yield f"{program}.cli.demo.consumer   # goes on from the checkpoints, until Ctrl-C"
    yield f"{program}.cli.demo.spark_job  # streams what follows the checkpoints"
    if storage.is_own:
        yield f'{program}.conformance "${STORE_VARIABLE}"'
    if storage.look is not None:
        yield storage.look
