"""Sequence of the demo's steps, and its result."""

import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import typer

from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints.cli.demo import stage as stages
from eventhub_checkpoints.cli.demo.command import CannotBeginError, DemoPlan, Signals, Stopped
from eventhub_checkpoints.cli.demo.programs import HUB_VARIABLE, STORE_VARIABLE
from eventhub_checkpoints.cli.demo.publisher import Publisher
from eventhub_checkpoints.cli.demo.report import PartitionOutcome, Screen, broken_promises
from eventhub_checkpoints.cli.demo.stage import DemoError, Program, Servers, Stage
from eventhub_checkpoints.cli.demo.storage import Storage, storage_of
from eventhub_checkpoints.errors import CheckpointStoreError
from eventhub_checkpoints.registry import shown

FOLDER_PREFIX = "ehcp-demo-"

TICKS = 60
"""Number of ticks over which all events are spread, if the consumers keep up."""

IDLE_SECONDS = 2.0
"""Seconds for which the last consumer waits for an event that should not come."""


def run(
    plan: DemoPlan, screen: Screen, signals: Signals, stack: ExitStack
) -> tuple[Servers, list[PartitionOutcome]]:
    """Run the demo; return its servers, and the outcome of each partition.

    Args:
        stack: stops everything that is started here, in reverse order.

    Raises:
        CannotBeginError: the storage cannot be used; nothing was started.
        CheckpointStoreError: a part did not start, exited early, or a wait timed out.
    """
    stage = set_up(plan, screen, signals, stack)
    share_and_kill(stage, plan)
    take_over_and_stop(stage, plan)
    checkpoints = stage.servers.stored_checkpoints()
    read = go_on_with_spark(stage, plan)
    return_to_a_consumer(stage, plan)
    return stage.servers, outcomes(stage, checkpoints, read)


def set_up(plan: DemoPlan, screen: Screen, signals: Signals, stack: ExitStack) -> Stage:
    """Start hub, storage and publisher."""
    with signals.held_back():
        # Spark's processes may still clean up in the folder while it is being removed.
        temporary = TemporaryDirectory(prefix=FOLDER_PREFIX, ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(temporary))
    storage = prepared_storage(plan, folder, screen)
    servers = stages.start_servers(stack, signals, storage, folder, plan.partitions)
    screen.step(f"a local hub with {plan.partitions} partitions is up")
    hub = servers.addresses.connection_string
    publisher = stack.enter_context(Publisher(hub, plan.partitions))
    return Stage(stack, signals, screen, folder, servers, publisher, plan.events // TICKS)


def prepared_storage(plan: DemoPlan, folder: Path, screen: Screen) -> Storage:
    """Return the storage of the checkpoints after checking that it can be used.

    Raises:
        CannotBeginError: it cannot be used.
    """
    try:
        storage = storage_of(plan.store, plan.consumer, folder)
        screen.step(f"checkpoints go to {storage.source}")
        storage.prepare()
    except CheckpointStoreError as error:
        target = "a SQLite file" if plan.store is None else repr(shown(plan.store))
        raise CannotBeginError(f"the checkpoints cannot go to {target}: {error}") from error
    return storage


def share_and_kill(stage: Stage, plan: DemoPlan) -> None:
    """Let two consumers share the hub, and kill one in the middle of its work."""
    first, second = (stage.start_consumer(name, plan.consumer) for name in "AB")
    stage.screen.step(f"consumers A and B ({plan.consumer}) are started, the publisher starts")
    stage.until(
        lambda: shared_evenly(plan.partitions, first, second),
        "A and B share the partitions evenly",
        publish_to=plan.sent_at_first,
    )
    stage.screen.step(f"A and B share the partitions: {held_by(first)} and {held_by(second)}")
    stage.until(
        lambda: (
            stage.processed >= plan.processed_at_the_kill
            and all(consumer.journal.count for consumer in stage.consumers)
        ),
        f"A and B have processed {plan.processed_at_the_kill} events",
        publish_to=plan.sent_at_the_kill,
    )
    first.runs = False
    if (status := first.child.kill()) != -signal.SIGKILL:
        raise DemoError(f"A ended with status {status} before it was killed{first.last_words()}")
    stage.look()
    stage.screen.step(f"A is killed (kill -9), {first.journal.count} events into its work")


def take_over_and_stop(stage: Stage, plan: DemoPlan) -> None:
    """Let the other consumer take over and process the events, and stop it cleanly."""
    survivor = stage.consumers[1]
    stage.until(
        lambda: len(survivor.journal.held) == plan.partitions,
        "B takes over every partition",
        publish_to=plan.consumed,
    )
    stage.screen.step("B has taken over every partition")
    stage.until(
        lambda: stage.processed == plan.consumed,
        f"all of the {plan.consumed} events are processed",
        publish_to=plan.consumed,
    )
    stage.stop(survivor)
    stage.screen.step(f"{plan.consumed} events are published and processed; B is stopped")


def go_on_with_spark(stage: Stage, plan: DemoPlan) -> dict[str, list[int]]:
    """Publish more events, and read them with a PySpark stream from the checkpoints."""
    rest = plan.events - stage.publisher.total
    stage.publisher.publish(rest)
    stage.look()
    stage.screen.step(f"{rest} more events are published; PySpark starts at the checkpoints")
    read = stages.read_with_spark(stage)
    stage.screen.step(
        f"PySpark has read {sum(map(len, read.values()))} events and written its progress back"
    )
    return read


def return_to_a_consumer(stage: Stage, plan: DemoPlan) -> None:
    """Start a consumer where Spark ended, which finds no events left."""
    last = stage.start_consumer("C", plan.consumer)
    stage.until(lambda: len(last.journal.held) == plan.partitions, "C holds every partition")
    stage.linger(IDLE_SECONDS)
    stage.stop(last)
    stage.screen.step(f"consumer C has found {last.journal.count} events left to read")


def outcomes(
    stage: Stage, checkpoints: Mapping[str, int], read: Mapping[str, list[int]]
) -> list[PartitionOutcome]:
    """Return the outcome of each partition, with each number from its original source.

    Args:
        checkpoints: those before Spark.
        read: the sequence numbers that Spark read.
    """
    left = stage.servers.stored_checkpoints()
    *before, after = [consumer.journal for consumer in stage.consumers]
    return [
        PartitionOutcome(
            partition=partition,
            sent=sent,
            published=stage.publisher.published(partition),
            processed=[number for journal in before for number in journal.events[partition]],
            saved=max(
                (each.saved[partition] for each in before if partition in each.saved),
                default=None,
            ),
            checkpoint=checkpoints.get(partition),
            read_by_spark=read.get(partition, []),
            checkpoint_of_spark=left.get(partition),
            read_after_spark=after.events[partition],
        )
        for partition, sent in stage.publisher.sent.items()
    ]


def shared_evenly(partitions: int, *consumers: Program) -> bool:
    """Return whether each partition has one owner, and each consumer at least a fair share."""
    held: Sequence[set[str]] = [consumer.journal.held for consumer in consumers]
    if sum(map(len, held)) != partitions or len(set().union(*held)) != partitions:
        return False
    return min(map(len, held)) >= partitions // len(consumers)


def held_by(consumer: Program) -> str:
    """Return its partitions as text."""
    return ", ".join(sorted(consumer.journal.held, key=int))


def result(screen: Screen, outcomes: Sequence[PartitionOutcome]) -> int:
    """Show whether every promise was kept, and the table; return the exit status."""
    broken = broken_promises(outcomes)
    screen.verdict(verdict_of(outcomes, broken), is_good=not broken)
    screen.results(outcomes)
    if broken:
        typer.echo("\n".join(["The demo has FAILED:", *broken]), err=True)
        return 1
    screen.note(
        "Twice: not saved yet when A was killed, or when the partition moved. PySpark\n"
        "began right after the checkpoints and saved its own; C had nothing left to read."
    )
    return 0


def verdict_of(outcomes: Sequence[PartitionOutcome], broken: Sequence[str]) -> str:
    """Return the result in one line."""
    if broken:
        promises = "1 promise is" if len(broken) == 1 else f"{len(broken)} promises are"
        return f"The demo has failed: {promises} broken."
    published = sum(len(outcome.published) for outcome in outcomes)
    twice = sum(outcome.twice for outcome in outcomes)
    read = sum(len(outcome.read_by_spark) for outcome in outcomes)
    return (
        f"Nothing was lost. {twice} of {published} events were processed twice; "
        f"Spark read its {read}."
    )


NEXT = (
    ("demo --keep", "keep the hub and the checkpoints"),
    ("demo --store URL", "the same on a store of yours"),
)
"""Commands of this program after the demo, and what they do."""
OWN_HUB = ("python -m eventhub_checkpoints.localhub", "a hub for a program of yours")


def suggest(screen: Screen) -> None:
    """Print what to try after the demo."""
    screen.say("What to try next:")
    lines = [*((as_typed(words), text) for words, text in NEXT), OWN_HUB]
    width = max(len(command) for command, _ in lines)
    for command, text in lines:
        screen.say(f"  {command:{width}}  {text}")


def keep_up(screen: Screen, servers: Servers) -> None:
    """Print what can be tried, and wait for Ctrl-C."""
    screen.say("The hub and the checkpoints are kept until Ctrl-C. In another terminal:")
    for line in what_to_try(servers):
        screen.say(f"  {line}")
    try:
        while True:
            signal.pause()
    except Stopped:
        # Ctrl-C is the expected end.
        screen.say("stopping")


def what_to_try(servers: Servers) -> Iterator[str]:
    """Yield shell commands, without a secret of the user."""
    # With the full path, because the other terminal may use another environment.
    program = f"{sys.executable} -m eventhub_checkpoints"
    addresses, storage = servers.addresses, servers.storage
    yield f"export {HUB_VARIABLE}='{addresses.connection_string}'"
    # The masked part may be a password.
    is_whole = shown(addresses.store_url) == addresses.store_url
    value = f"'{addresses.store_url}'" if is_whole else "...  # the value of --store"
    yield f"export {STORE_VARIABLE}={value}"
    yield f"{program}.cli.demo.publisher  # sends 100 more events"
    yield f"{program}.cli.demo.consumer   # resumes from the checkpoints, until Ctrl-C"
    yield f"{program}.cli.demo.spark_job  # streams the events after the checkpoints"
    if storage.is_own:
        yield f'{program}.conformance "${STORE_VARIABLE}"'
    if storage.look is not None:
        yield storage.look
