"""Encoded events of several kinds of producers; deterministic by seed."""

from collections.abc import Callable, Iterator
from random import Random

from eventhub_checkpoints.amqp.messages import Message, Properties
from eventhub_checkpoints.amqp.types import Symbol, Timestamp

WORDS = ("temperature", "pressure", "größe", "温度", "status", "alarm")
DEVICE = "iothub-connection-device-id"
DAY = Timestamp(1795255200000)


def none(number: int, chance: Random) -> Message:
    """Return an event with a body of 200 bytes and nothing else."""
    return Message(data=[chance.randbytes(200)])


def three(number: int, chance: Random) -> Message:
    """Return an event with 200 bytes and three strings."""
    pairs = {"device": f"sensor-{number % 500}", "type": "temperature", "unit": "celsius"}
    return Message(application_properties=pairs, data=[chance.randbytes(200)])


def mixed(number: int, chance: Random) -> Message:
    """Return an event of one of some fifty programs.

    They differ in keys, devices, content types, 0 to 3 properties, and 100 to 400 bytes.
    """
    annotations: dict[str, object] = {}
    if chance.random() < 0.5:
        annotations["x-opt-partition-key"] = f"key-{number % 100}"
    if chance.random() < 0.3:
        annotations |= {DEVICE: f"dev-{number % 1000}", "iothub-enqueuedtime": DAY}
    fields = None
    if chance.random() < 0.5:
        kind = chance.choice(("application/json", "text/plain"))
        identity = f"m-{number}" if chance.random() < 0.3 else None
        fields = Properties(content_type=Symbol(kind), message_id=identity)
    values = {"device": f"v-{number}", "type": chance.choice(("wärme", "druck")), "größe": number}
    pairs = dict([*values.items()][: chance.randrange(4)])
    return Message(
        message_annotations=annotations or None,
        properties=fields,
        application_properties=pairs or None,
        data=[chance.randbytes(chance.randint(100, 400))],
    )


def unlike(number: int, chance: Random) -> Message:
    """Return an event with its own template: names, their order and value types vary."""
    annotations = {"x-opt-partition-key": f"device-{chance.randrange(1000)}"}
    if chance.random() < 0.5:
        annotations[DEVICE] = f"sensor-{chance.randrange(100):04d}"
    kind = chance.choice((None, "application/json", "text/plain"))
    return Message(
        message_annotations=annotations,
        properties=Properties(content_type=Symbol(kind)) if kind else None,
        application_properties={
            chance.choice(WORDS): chance.choice((number, chance.choice(WORDS), 1.5, True))
            for _ in range(chance.randrange(4))
        },
        data=[chance.randbytes(chance.randint(100, 400))],
    )


PRODUCERS: dict[str, Callable[[int, Random], Message]] = {
    make.__name__: make for make in (none, three, mixed, unlike)
}


def messages(kind: str, count: int, first: int = 0, seed: int = 7) -> Iterator[bytes]:
    """Yield `count` encoded events of a kind."""
    chance, make = Random(seed), PRODUCERS[kind]
    for number in range(first, first + count):
        yield make(number, chance).encode()
