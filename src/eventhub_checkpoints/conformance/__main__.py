"""`python -m eventhub_checkpoints.conformance URL`: certify the store that a URL names."""

import argparse
import importlib
import inspect
import logging
import sys
import uuid
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NoReturn, cast

from eventhub_checkpoints._shared.secrets import masked, quoted
from eventhub_checkpoints.aio.registry import GROUP as AIO_GROUP
from eventhub_checkpoints.conformance.certify import Certifier, certify
from eventhub_checkpoints.conformance.checks import CHECKS
from eventhub_checkpoints.conformance.clients import Client
from eventhub_checkpoints.conformance.contract import Check, Given
from eventhub_checkpoints.conformance.report import Outcome, Verdict
from eventhub_checkpoints.errors import CheckpointStoreError, ConfigurationError, StoreNotReadyError
from eventhub_checkpoints.registry import GROUP, is_async_store, opened, shown

NOT_SHARED = (
    "a second store of this factory does not list what the first one has claimed: each must open "
    "the same backend, so that its stores share their rows as those of several processes do"
)


class Parser(argparse.ArgumentParser):
    """Argument parser that masks a secret which its error message would quote."""

    def error(self, message: str) -> NoReturn:
        """Print usage and message, and exit with status 2."""
        super().error(masked(message))


def parser() -> argparse.ArgumentParser:
    """Return the argument parser of the command."""
    found = Parser(prog="python -m eventhub_checkpoints.conformance", description=__doc__)
    add = found.add_argument
    add("url", nargs="?", help="memory:, a container's URL, .. or package.module:factory")
    add("--aio", action="store_true", help="open the store for azure.eventhub.aio")
    add("--create", action="store_true", help="create a container, tables or keyspace first")
    add("--accessors", metavar="MODULE:NAME", help="called with a store, gives its Accessors")
    add("--only", metavar="NAME", action="append", help="a check or a guarantee; repeatable")
    add("--list", action="store_true", help="print the checks, and try none")
    add("--json", action="store_true", help="print the report as JSON")
    add("--verbose", action="store_true", help="name the checks that passed, too")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Certify a store, and return the exit status.

    0: no check failed. 1: a check failed. 2: the store could not be reached at all. 3: the store
    does not declare `for_one_process`, and processes could not race it.
    """
    options = parser().parse_args(arguments)
    # Injected faults would be logged as if they were real.
    logging.basicConfig(handlers=[logging.NullHandler()])
    try:
        checks = chosen(options.only or [])
        if options.list:
            print("\n".join(listed(checks)))
            return 0
        return tried(options, checks)
    except CheckpointStoreError as error:
        print(f"{error}", file=sys.stderr)
        return 2


def tried(options: argparse.Namespace, checks: Sequence[Check]) -> int:
    """Run the checks and print the report; return the exit status."""
    if options.url is None:
        raise ConfigurationError("give a store URL, or --list to see the checks")
    make_store = factory(options.url, options.aio)
    accessors = given_accessors(options.accessors)
    look(make_store, shown(options.url), options.create)
    report = certify(
        make_store,
        accessors,
        name=f"{shown(options.url)} ({'aio' if options.aio else 'sync'})",
        checks=checks,
        progress=None if options.json else progress,
    )
    if not options.json:
        print(file=sys.stderr)
    print(report.json() if options.json else report.text(options.verbose))
    if report.failed:
        if not shares_rows(make_store):
            print(NOT_SHARED, file=sys.stderr)
        return 1
    return 3 if report.why_not_raced else 0


def factory(url: str, aio: bool) -> Callable[[], Any]:
    """Return a function that opens one more store over the backend of a URL.

    Each store of `memory:` has separate rows, so it is replaced by a named one with an unused name.
    """
    if url == "memory:":
        url = f"memory:conformance-{uuid.uuid4().hex}"

    return partial(opened_store, url, aio)


def opened_store(url: str, aio: bool) -> Any:
    """Open one more store, or return the coroutine that opens it."""
    made = opened(AIO_GROUP if aio else GROUP, url, None, {})
    return awaited(made, url, aio) if inspect.isawaitable(made) else of_colour(made, url, aio)


async def awaited(made: Awaitable[Any], url: str, aio: bool) -> Any:
    """Return the store that a coroutine function makes."""
    return of_colour(await made, url, aio)


def of_colour(store: Any, url: str, aio: bool) -> Any:
    """Return the store if it is sync or async as specified on the command line.

    Raises:
        ConfigurationError: it is of the other kind, or not a store.
    """
    is_async = is_async_store(store, url)
    if is_async and not aio:
        raise ConfigurationError(f"{shown(url)} makes an async store; give --aio")
    if aio and not is_async:
        raise ConfigurationError(f"{shown(url)} makes a sync store; leave --aio out")
    return store


def given_accessors(place: str | None) -> Given:
    """Return the function `MODULE:NAME`; None if the option is not set.

    Raises:
        ConfigurationError: the module or the function does not exist.
    """
    if place is None:
        return None
    module, _, name = place.partition(":")
    try:
        found = attrgetter(name)(importlib.import_module(module))
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"--accessors {quoted(place)} names no function ({masked(str(error))}); "
            "expected package.module:function"
        ) from error
    return cast("Given", found)


def look(make_store: Callable[[], Any], name: str, create: bool) -> None:
    """Read from the store once, so that an unreachable one is reported only once.

    Raises:
        ConfigurationError: the store raised an error of another kind.
        CheckpointStoreError: the store's error.
    """
    try:
        with Certifier(make_store) as certifier, certifier.subject() as subject:
            if create:
                created(subject.client)
            subject.client.list_ownership()
    except StoreNotReadyError as error:
        way_out = "" if create else ", or give --create"
        raise StoreNotReadyError(f"{error}{way_out}") from error
    except CheckpointStoreError:
        raise
    except Exception as error:
        said = masked(" ".join(f"{type(error).__name__}: {error}".split()))
        raise ConfigurationError(f"{name} could not be asked: {said}") from error


def shares_rows(make_store: Callable[[], Any]) -> bool:
    """Return whether a second store lists a claim that the first one lists itself."""
    try:
        with Certifier(make_store) as certifier, certifier.subject() as subject:
            subject.client.claim("0", "first")
            return bool(subject.another().list_ownership() or not subject.client.list_ownership())
    except Exception:  # the report contains the error
        return True


def created(client: Client) -> None:
    """Create the tables or containers that the store needs.

    Raises:
        ConfigurationError: the store cannot create them.
    """
    if not hasattr(client.store, "create"):
        raise ConfigurationError("the store has nothing that it could create; leave --create out")
    client.call("create")


def chosen(names: Sequence[str]) -> Sequence[Check]:
    """Return the checks of these names or guarantees; all of them if no name is passed.

    Raises:
        ConfigurationError: a name is neither.
    """
    known = {name for one in CHECKS for name in (one.name, *one.guarantees, *one.habits)}
    for name in names:
        if name not in known:
            raise ConfigurationError(
                f"{quoted(name)} is no check and no guarantee; --list shows them"
            )
    wanted = set(names)
    return [one for one in CHECKS if not names or wanted & {one.name, *one.guarantees, *one.habits}]


def listed(checks: Sequence[Check]) -> list[str]:
    """Return the checks as text, each with its level, guarantees, habits and sentence."""
    return [
        f"{one.level}  {' '.join((*one.guarantees, *one.habits)):<14} {one.name}\n   {one.sentence}"
        for one in checks
    ]


def progress(outcome: Outcome) -> None:
    """Print one character for each check."""
    signs = {Verdict.PASSED: ".", Verdict.FAILED: "F", Verdict.NOT_SHOWN: "-"}
    print(signs[outcome.verdict], end="", flush=True, file=sys.stderr)


if __name__ == "__main__":
    # Imported by its real name, so that racing processes can unpickle its functions.
    from eventhub_checkpoints.conformance import __main__ as command

    sys.exit(command.main())
