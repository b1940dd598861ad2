"""`python -m eventhub_checkpoints.conformance URL`: certify the store that a URL names."""

import argparse
import faulthandler
import importlib
import inspect
import logging
import multiprocessing
import os
import sys
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from threading import Timer
from typing import Any, NoReturn, cast

from eventhub_checkpoints._shared.durations import parse_duration
from eventhub_checkpoints._shared.error_messages import message_of
from eventhub_checkpoints._shared.secrets import masked, quoted
from eventhub_checkpoints.aio.registry import GROUP as AIO_GROUP
from eventhub_checkpoints.conformance.certify import Certifier, certify
from eventhub_checkpoints.conformance.checks import CHECKS
from eventhub_checkpoints.conformance.contract import AccessorsArgument, Check
from eventhub_checkpoints.conformance.processes import in_one_line
from eventhub_checkpoints.conformance.report import Outcome, Verdict
from eventhub_checkpoints.errors import CheckpointStoreError, ConfigurationError, StoreNotReadyError
from eventhub_checkpoints.registry import GROUP, is_async_store, opened, shown

NAME = "python -m eventhub_checkpoints.conformance"
LIMIT = 300.0
"""Seconds after which a check hangs: a sound store needs a tenth of it for the longest."""
SIGNS = {Verdict.PASSED: ".", Verdict.FAILED: "F", Verdict.NOT_SHOWN: "-"}
NOT_SHARED = (
    "a second store of this factory does not list what the first one has claimed: each must open "
    "the same backend, so that its stores share their rows as those of several processes do"
)


class Parser(argparse.ArgumentParser):
    """Argument parser whose error messages mask secrets."""

    def error(self, message: str) -> NoReturn:
        """Print usage and message, and exit with status 2."""
        super().error(masked(message))


def parser(name: str) -> argparse.ArgumentParser:
    """Return the argument parser of the command, which has a name in its usage."""
    commands = Parser(prog=name, description="Certify the store that a URL names.")
    add = commands.add_argument
    add("url", nargs="?", help="memory:, a container's URL, ..., or package.module:factory")
    add("--aio", action="store_true", help="open the store for azure.eventhub.aio")
    add("--create", action="store_true", help="create a container, tables or keyspace first")
    add("--accessors", metavar="MODULE:NAME", help="a function from a store to its Accessors")
    add("--only", metavar="NAME", action="append", help="only this check or guarantee; repeatable")
    add("--list", action="store_true", help="print the checks and run none")
    help_limit = "end with status 1 if a check takes longer; 300s by default"
    add("--limit", metavar="DURATION", type=duration, default=LIMIT, help=help_limit)
    add("--json", action="store_true", help="print the report as JSON")
    add("--verbose", action="store_true", help="also name the checks that passed")
    return commands


def duration(text: str) -> float:
    """Return the seconds of a duration; argparse reports the error of another text."""
    try:
        return parse_duration(text)
    except ConfigurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def main(arguments: Sequence[str] | None = None, name: str = NAME) -> int:
    """Certify a store, and return the exit status.

    0: no check failed. 1: a check failed. 2: the store could not be opened or read. 3: the store
    does not declare `for_one_process`, but no other process could open it.

    Args:
        arguments: of the command line; None: those of this process.
        name: by which the command was called.
    """
    options = parser(name).parse_args(arguments)
    # Injected faults would be logged as if they were real.
    logging.basicConfig(handlers=[logging.NullHandler()])
    try:
        checks = chosen(options.only or [])
        if options.list:
            for check in checks:
                tags = " ".join((*check.guarantees, *check.habits))
                print(f"{check.level}  {tags:<14} {check.name}\n   {check.sentence}")
            return 0
        return run(options, checks)
    except CheckpointStoreError as error:
        print(error, file=sys.stderr)
        return 2


def run(options: argparse.Namespace, checks: Sequence[Check]) -> int:
    """Run the checks and print the report; return the exit status."""
    if options.url is None:
        raise ConfigurationError("give a store URL, or --list to print the checks")
    # Stores of plain `memory:` do not share rows, so an unused name is added.
    is_unnamed = options.url == "memory:"
    url = f"memory:conformance-{uuid.uuid4().hex}" if is_unnamed else options.url
    make_store = partial(opened_store, url, options.aio)
    accessors = None if options.accessors is None else named_function(options.accessors)
    look(make_store, shown(options.url), options.create)
    with watched(checks, options.limit) as ended:

        def progress(outcome: Outcome) -> None:
            ended()
            if not options.json:
                print(SIGNS[outcome.verdict], end="", flush=True, file=sys.stderr)

        report = certify(
            make_store,
            accessors,
            name=f"{shown(options.url)} ({'aio' if options.aio else 'sync'})",
            checks=checks,
            progress=progress,
        )
    if not options.json:
        print(file=sys.stderr)
    print(report.json() if options.json else report.text(options.verbose))
    if report.failed:
        if not shares_rows(make_store):
            print(NOT_SHARED, file=sys.stderr)
        return 1
    return 3 if report.why_not_raced else 0


def opened_store(url: str, aio: bool) -> Any:
    """Open a store by URL, or return the coroutine that opens it.

    Raises:
        ConfigurationError: it is not a store, or sync instead of async or vice versa.
    """
    store = opened(AIO_GROUP if aio else GROUP, url, None, {})
    return awaited(store, url, aio) if inspect.isawaitable(store) else of_kind(store, url, aio)


async def awaited(store: Awaitable[Any], url: str, aio: bool) -> Any:
    """Return the store that a coroutine function opens."""
    return of_kind(await store, url, aio)


def of_kind(store: Any, url: str, aio: bool) -> Any:
    """Return the store if it is async with `--aio`, or sync without it."""
    is_async = is_async_store(store, url)
    if is_async and not aio:
        raise ConfigurationError(f"{shown(url)} makes an async store; give --aio")
    if aio and not is_async:
        raise ConfigurationError(f"{shown(url)} makes a sync store; leave --aio out")
    return store


def named_function(path: str) -> AccessorsArgument:
    """Return the function `MODULE:NAME`.

    Raises:
        ConfigurationError: the module or the function does not exist.
    """
    module, _, name = path.partition(":")
    try:
        return cast("AccessorsArgument", attrgetter(name)(importlib.import_module(module)))
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"--accessors {quoted(path)} does not name a function ({message_of(error)}); "
            "expected package.module:function"
        ) from error


def look(make_store: Callable[[], Any], name: str, create: bool) -> None:
    """Read from the store once, so that an unreachable one is reported only once.

    Raises:
        ConfigurationError: the store raised an error of another kind.
        CheckpointStoreError: the store's error.
    """
    try:
        with Certifier(make_store) as certifier, certifier.subject() as subject:
            if create and not hasattr(subject.client.store, "create"):
                raise ConfigurationError("the store has no `create` method; leave --create out")
            if create:
                subject.client.call("create")
            subject.client.list_ownership()
    except StoreNotReadyError as error:
        raise StoreNotReadyError(f"{error}{'' if create else ', or give --create'}") from error
    except CheckpointStoreError:
        raise
    except Exception as error:
        raise ConfigurationError(f"{name} could not be read: {in_one_line(error)}") from error


def shares_rows(make_store: Callable[[], Any]) -> bool:
    """Return whether a second store lists a claim that the first one lists itself."""
    try:
        with Certifier(make_store) as certifier, certifier.subject() as subject:
            subject.client.claim("0", "first")
            return bool(subject.another().list_ownership() or not subject.client.list_ownership())
    except Exception:  # the report contains the error
        return True


def chosen(names: Sequence[str]) -> Sequence[Check]:
    """Return the checks of these names or guarantees; all of them if no name is passed.

    Raises:
        ConfigurationError: a name is neither a check nor a guarantee.
    """
    by_name: dict[str, list[Check]] = defaultdict(list)
    for check in CHECKS:
        for name in (check.name, *check.guarantees, *check.habits):
            by_name[name].append(check)
    for name in names:
        if name not in by_name:
            raise ConfigurationError(
                f"{quoted(name)} is neither a check nor a guarantee; --list shows them"
            )
    chosen_checks = [check for name in names for check in by_name[name]]
    return [check for check in CHECKS if not names or check in chosen_checks]


@contextmanager
def watched(checks: Sequence[Check], limit: float) -> Iterator[Callable[[], None]]:
    """Yield what is to be called after each check; end the process if one takes too long.

    What hangs is often a lock of the store's driver, which everything else would wait for, too.

    Args:
        checks: in the order in which they are run.
        limit: seconds that each may take.
    """
    names = iter([*(check.name for check in checks), "the end of the processes that race"])

    def give_up(name: str) -> None:
        print(f"\n{name} has not ended within {limit:g} s. Each thread is here:", file=sys.stderr)
        faulthandler.dump_traceback()
        for process in multiprocessing.active_children():
            process.kill()
        os._exit(1)

    def started() -> Timer:
        timer = Timer(limit, give_up, [next(names)])
        timer.daemon = True
        timer.start()
        return timer

    running = started()

    def ended() -> None:
        nonlocal running
        running.cancel()
        running = started()

    try:
        yield ended
    finally:
        running.cancel()


if __name__ == "__main__":
    # Imported by its real name, so that racing processes can unpickle its functions.
    from eventhub_checkpoints.conformance import __main__ as command

    try:
        status = command.main()
        sys.stdout.flush()
    except BrokenPipeError:
        # Who reads has seen enough; at its exit, Python would try to write the rest again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)
