"""What a check is, and the list of them: together they are the contract of a store."""

import unittest
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eventhub_checkpoints.conformance.harness import Subject

GUARANTEES = {
    "G1": "one winner",
    "G2": "no invented ownership",
    "G3": "no checkpoint goes back",
    "G4": "saved never passes processed",
    "G5": "one bad record harms nobody",
    "G6": "clock skew steals nothing",
    "G7": "the same bytes",
    "G8": "release is calm",
    "G9": "nothing shared",
    "G10": "bounded",
    "G11": "a good guest",
}
"""Number and short name, as `docs/guarantees.md` has them."""

LEVELS = {
    1: "black box",
    2: "our base class, with faults between it and the hooks",
    3: "what only the store's author can cause",
}
BASE = "base"
"""The need of a check that is about a store on our base class."""
PROCESSES = "processes"
"""The need of a check that races processes; without it a store is not certified."""
ONE_PROCESS = "the store declares that it is for one process"
"""Why processes cannot race a store that has `for_one_process`."""


class NotShown(unittest.SkipTest):
    """A check that says nothing about this store, and why; unittest and pytest call it a skip."""


class NotRaced(NotShown):
    """No processes could race the store, which does not declare that it is for one process."""


@dataclass(frozen=True, slots=True)
class Check:
    """One sentence of the contract, and how to try it.

    Attributes:
        name: the function's name; it says what holds.
        guarantees: numbers of the guarantees that it belongs to; the first one files it.
        habits: the client's habits that it comes from, numbered as in `docs/guarantees.md`.
        needs: `"base"`, `"processes"`, or names of accessors, without which it cannot be shown.
        sentence: the contract's words.
    """

    name: str
    guarantees: tuple[str, ...]
    habits: tuple[str, ...]
    needs: tuple[str, ...]
    sentence: str
    function: Callable[["Subject"], None]

    @property
    def level(self) -> int:
        """Which of the `LEVELS` it is of."""
        if set(self.needs) - {BASE, PROCESSES}:
            return 3
        return 2 if BASE in self.needs else 1


CHECKS: list[Check] = []
"""Every check, in the order of the contract."""


def check(*tags: str, needs: tuple[str, ...] = ()) -> Callable[..., Callable[["Subject"], None]]:
    """Register a function as a check; its docstring is the sentence of the contract.

    Args:
        *tags: `G1` to `G11`, and `P1` to `P24` for a habit of the client.
        needs: see `Check`.
    """

    def registered(function: Callable[["Subject"], None]) -> Callable[["Subject"], None]:
        CHECKS.append(
            Check(
                function.__name__,
                tuple(tag for tag in tags if tag in GUARANTEES),
                tuple(tag for tag in tags if tag not in GUARANTEES),
                needs,
                " ".join((function.__doc__ or "").split()),
                function,
            )
        )
        return function

    return registered
