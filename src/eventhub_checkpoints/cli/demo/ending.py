"""How the demo ends: the table, the verdict, and what to try where the servers are kept."""

import signal
import sys
from collections.abc import Sequence

import typer

from eventhub_checkpoints.cli.demo.place import STORE_VARIABLE, Place
from eventhub_checkpoints.cli.demo.screen import Screen
from eventhub_checkpoints.cli.demo.signals import Stopped
from eventhub_checkpoints.cli.demo.verdict import PartitionOutcome, broken_promises


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
        f"Spark read the {read} events after the checkpoints, no other one and none twice."
    )
    screen.step("done")
    return 0


def keep_up(screen: Screen, place: Place) -> None:
    """Say what can be tried, and wait for Ctrl-C."""
    # In full, for this environment may not be the one of the other terminal.
    program = f"  {sys.executable} -m eventhub_checkpoints"
    screen.say("Hub and storage stay up until Ctrl-C. In another terminal:")
    for name, value in place.variables.items():
        screen.say(f"  export {name}='{value}'")
    screen.say(f"{program}.cli.demo.consumer   # goes on from the checkpoints, until Ctrl-C")
    screen.say(f"{program}.cli.demo.spark_job  # reads what follows the checkpoints")
    screen.say(f'{program}.conformance "${STORE_VARIABLE}"')
    try:
        while True:
            signal.pause()
    except Stopped:
        # What the user was asked for.
        screen.say("stopping")
