"""The checks of the conformance suite on a simulated clock, for aio stores without I/O."""

from contextlib import ExitStack
from typing import Any, Self

from eventhub_checkpoints.conformance.clients import Loop
from simulated_time import simulation


class SimulatedLoop(Loop):
    """Runs each call of a store to its end in the calling thread; what it waits for is simulated.

    While it is open, the clock that a check reads is the simulated one, too, so seconds may be
    compared with `==`. A check that calls the store from several threads cannot run on it.
    """

    def __init__(self) -> None:
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._simulation = self._open.enter_context(simulation())
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def finished(self, result: Any) -> Any:
        """Return the result of a call, awaited if it is awaitable."""
        return self._simulation.finished(result)
