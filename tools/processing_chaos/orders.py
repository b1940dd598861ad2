"""What a worker is told: by which way it processes, what goes wrong, and when it saves."""

import json
import random
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from eventhub_checkpoints import Policy, every, trailing

Way = Literal["pool", "handler", "processor", "coalesced"]
Colour = Literal["sync", "aio"]
WAYS: tuple[Way, ...] = get_args(Way)
COLOURS: tuple[Colour, ...] = get_args(Colour)


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders of one worker.

    Attributes:
        name: of the worker, without blanks.
        way: `pool`: events are tracked, and finished out of order by threads or tasks; `handler`:
            tracked, and finished in turn; `processor`: an `EventProcessor`; `coalesced`: a
            checkpoint for every event.
        colour: of the client and the store.
        seed: of its delays and failures.
        connection: of the hub.
        url: of the store.
        journal: path of the file.
        saves_trailing: whether the policy is `trailing` rather than `every`.
        events: of the policy; None: it does not count.
        seconds: of the policy; None: it has no clock.
        max_pending: of the checkpointer, or of the processor.
        max_unsaved: of the checkpointer; None: any number.
        batch: events that a processor is given at most.
        is_apart: whether a processor finishes events apart.
        slowness: seconds that an event may take.
        write_slowness: seconds that a write may take longer.
        failures: the share of events that fail, each time anew.
    """

    name: str
    way: Way
    colour: Colour
    seed: int
    connection: str
    url: str
    journal: str
    saves_trailing: bool
    events: int | None
    seconds: float | None
    max_pending: int
    max_unsaved: int | None
    batch: int
    is_apart: bool
    slowness: float
    write_slowness: float
    failures: float

    @property
    def policy(self) -> Policy:
        """When positions are saved."""
        if self.saves_trailing and self.events and self.seconds:
            return trailing(events=self.events, seconds=self.seconds)
        return every(events=self.events, seconds=self.seconds)

    @property
    def window(self) -> int:
        """Events that may be begun and not passed, so that a worker's end makes them come again."""
        if self.way == "pool":
            return self.max_pending
        if self.way == "processor":
            return self.batch + (self.max_pending if self.is_apart else 0)
        return 1

    @property
    def kind(self) -> str:
        """What its replay is told under."""
        ways = {"processor": "processor, apart" if self.is_apart else "processor"}
        bounded = "" if self.max_unsaved is None else ", max_unsaved"
        return f"{self.colour} {ways.get(self.way, self.way)}{bounded}"

    def to_json(self) -> str:
        """For the command line."""
        return json.dumps(asdict(self))


def chosen_orders(chance: random.Random, name: str, **places: str) -> Orders:
    """Orders of any kind.

    Args:
        chance: decides.
        name: of the worker.
        places: `connection`, `url` and `journal`.
    """
    way = chance.choice(WAYS)
    has_bound = way in ("pool", "handler") and chance.random() < 0.5
    counted = chance.random()
    return Orders(
        name=name,
        way=way,
        colour=chance.choice(COLOURS),
        seed=chance.randrange(2**32),
        saves_trailing=chance.random() < 0.35,
        events=chance.randint(1, 40) if counted < 0.75 else None,
        seconds=round(chance.uniform(0.05, 0.6), 3) if counted > 0.45 else None,
        max_pending=chance.choice((2, 10, 60)),
        max_unsaved=chance.choice((1, 5, 40, 100)) if has_bound else None,
        batch=chance.randint(1, 30),
        is_apart=chance.random() < 0.5,
        # Or a pool would always be empty when a client that stops comes to the close handler.
        slowness=chance.choice((0.0, 0.005, 0.02, 0.05)) * (10 if way == "pool" else 1),
        write_slowness=chance.choice((0.0, 0.0, 0.02, 0.1)),
        failures=chance.choice((0.0, 0.0, 0.002, 0.01)),
        **places,
    )


def orders_of(text: str) -> Orders:
    """What `Orders.to_json` gave."""
    given: dict[str, Any] = json.loads(text)
    return Orders(**given)
