"""A trial: one caller, one fault, and how long that lasts."""

import logging
import socket
import threading
import time
from contextlib import ExitStack, suppress
from itertools import product
from typing import Any
from urllib.parse import urlsplit

from backends import BACKENDS, VARIANTS, Variant
from eventhub_checkpoints import aio, open_store
from eventhub_checkpoints.conformance.clients import Client, Loop
from eventhub_checkpoints.localhub.tls import SelfMadeAuthority
from eventhub_checkpoints.records import Scope
from outages.hub_callers import HUB_CALLERS, Prepared
from outages.place import AWAY, HUB, NAMESPACE, Gate, Place, opened, resolving
from outages.result import FOREVER, GIVEN_UP, Result
from tcp_servers import HOST

STORES = ("blob", "postgres", "redis")
CALLS = ("create", "verify", "list", "write")
STORE_CALLERS = [" ".join(words) for words in product(STORES, VARIANTS, CALLS)]


class LogLines(logging.Handler):
    """Keeps what this package says in the log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def store_call(
    name: str, variant: Variant, call: str, *, stack: ExitStack
) -> tuple[Gate, Prepared]:
    """Return a gate in front of a server, and a call of a store behind it."""
    place = stack.enter_context(stack.enter_context(BACKENDS[name]()).place())
    address = urlsplit(place.url)
    gate = stack.enter_context(Gate((address.hostname or HOST, address.port or 0)))
    stack.enter_context(resolving(gate))
    url = place.url.replace(f"{address.hostname}:{address.port}", f"{HOST}:{gate.port}", 1)
    loop = stack.enter_context(Loop())
    store: Any = (aio.open_store if variant == "aio" else open_store)(url)
    client = Client(store, Scope("ns", HUB, "$Default"), loop)
    stack.callback(client.close)

    def act(result: Result) -> None:
        if call == "list":
            client.list_checkpoints()
        elif call == "write":
            client.save("0", 1)
        else:
            client.call(call)

    return gate, act


def refuse(place: Place, fault: str, stack: ExitStack) -> None:
    """Let the hub refuse what the fault says, now and on open connections."""
    if fault == "key":
        place.hub.refuse_tokens()
    elif fault == "hub":
        place.hub.delete(HUB)
    elif fault == "untrusted":
        other = SelfMadeAuthority([HOST, NAMESPACE])
        stack.callback(other.close)
        stranger = socket.create_server((HOST, 0))
        stack.callback(stranger.close)

        def serve() -> None:
            with suppress(OSError):
                while True:
                    accepted, _ = stranger.accept()
                    with suppress(OSError):
                        other.context().wrap_socket(accepted, server_side=True).close()

        threading.Thread(target=serve, daemon=True).start()
        place.gate.backend = (HOST, stranger.getsockname()[1])
    place.gate.down()
    place.gate.up()


def try_one(caller: str, fault: str, seconds: float) -> Result:
    """Make one trial, and return what came of it."""
    result, lines = Result(caller, fault, seconds), LogLines()
    logging.getLogger("azure").setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        if caller in HUB_CALLERS:
            place = stack.enter_context(opened(fault))
            gate, act = place.gate, HUB_CALLERS[caller](place)
        else:
            name, variant, call = caller.split()
            gate, act = store_call(name, variant, call, stack=stack)  # type: ignore[arg-type]
        logging.getLogger("eventhub_checkpoints").addHandler(lines)
        if fault in AWAY:
            gate.fail(fault)
        else:
            refuse(place, fault, stack)
        timer = threading.Timer(0 if seconds == FOREVER else seconds, gate.heal)
        if seconds != FOREVER and fault in AWAY:
            timer.start()
            stack.callback(timer.join)
            stack.callback(timer.cancel)
        ended = threading.Event()

        def run() -> None:
            try:
                act(result)
            except Exception as error:
                # What an error reports is not lost: it can be read or sent again.
                result.error, result.lost = f"{type(error).__name__}: {error}", 0
            result.took = time.monotonic() - began
            ended.set()

        began = time.monotonic()
        threading.Thread(target=run, daemon=True).start()
        if not ended.wait(GIVEN_UP):
            result.took, result.error = GIVEN_UP, "did not end"
        result.said = list(lines.lines)
        gate.heal()
    return result
