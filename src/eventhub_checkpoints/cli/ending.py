"""End of a command that changes something: what it has done is said, however it ends."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

import typer

from eventhub_checkpoints._shared.signals import ended_by_sigterm
from eventhub_checkpoints.cli import complain
from eventhub_checkpoints.errors import CheckpointStoreError, HubUnavailableError, StoreError
from eventhub_checkpoints.operations.change import GroupActiveError

REFUSED = 4
"""Exit status if the group is active."""


@contextmanager
def telling(lines: Callable[[], Iterable[str]], *, executes: bool) -> Iterator[None]:
    """Say on standard error what a command has done if it does not come to its end.

    SIGTERM ends the block by an exception like Ctrl-C, so that what it holds is released. What the
    command prints belongs into the block, as standard output may be closed or full.

    Args:
        lines: what was done so far; nothing if nothing was.
        executes: whether the command changes something.

    Raises:
        typer.Exit: the group is active; the status is 4.
    """
    with ended_by_sigterm():
        try:
            yield
        except GroupActiveError as error:
            complain(error)
            raise typer.Exit(REFUSED) from None
        except (CheckpointStoreError, OSError, KeyboardInterrupt, SystemExit) as error:
            done = [*lines()]
            is_failure = executes and isinstance(error, (StoreError, HubUnavailableError, OSError))
            if done or is_failure or isinstance(error, (KeyboardInterrupt, SystemExit)):
                # Standard error may be closed as well.
                with suppress(OSError):
                    complain("ended early")
                    for line in done or ["nothing was changed"]:
                        typer.echo(f"  {line}", err=True)
            raise
