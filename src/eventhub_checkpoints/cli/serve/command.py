"""`ehcp serve`: options, the groups that it polls, and its life."""

import importlib.util
import json
import logging
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Annotated, Any

import typer

from eventhub_checkpoints.cli.target import Target, Through, on_targets
from eventhub_checkpoints.errors import MissingDriverError
from eventhub_checkpoints.operations.lag import Missing
from eventhub_checkpoints.operations.monitor import INTERVAL, Monitor, Watched
from eventhub_checkpoints.operations.scale import HOLD, TARGET

HOST = "127.0.0.1"
PORT = 9877
GRACE_SECONDS = 2.0
"""Seconds in which running calls of KEDA may end."""


@on_targets
def serve(
    targets: list[Target],
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = HOST,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port for HTTP; 0 takes a free one.")
    ] = PORT,
    grpc_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port for KEDA's external scaler. [default: it is not served]"
        ),
    ] = None,
    interval: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Time between two polls.")
    ] = INTERVAL,
    event_target: Annotated[
        int, typer.Option("--target", min=1, help="Unprocessed events for each replica.")
    ] = TARGET,
    hold: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="Time until lower demand for replicas counts."),
    ] = HOLD,
    missing: Annotated[
        Missing, typer.Option(help="Where the consumers start in a partition without a checkpoint.")
    ] = "earliest",
    seconds: Annotated[
        bool, typer.Option(help="Read the first unprocessed events, for the lag in seconds.")
    ] = True,
    through: Through = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the addresses as one line of JSON.")
    ] = False,
) -> None:
    """Serve the lag of groups to Prometheus and to KEDA.

    It listens for GET requests of /metrics, /lag.json and /health, and with --grpc-port for KEDA's
    calls. --group and --profile can be repeated. SIGTERM and Ctrl-C end it.
    """
    need("ehcp serve", "prometheus_client", "metrics")
    if grpc_port is not None:
        need("ehcp serve", "grpc", "keda")
        need("ehcp serve", "google.protobuf", "keda")
    # Imported here, because other commands do not need these packages.
    from eventhub_checkpoints.cli.serve.metrics import exposition
    from eventhub_checkpoints.cli.serve.web import Pages, Server

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    with ExitStack() as stack:
        ends = stack.enter_context(blocked_signals())
        monitor = stack.enter_context(
            Monitor(watch(targets, stack, missing, seconds, through), interval=interval, hold=hold)
        )
        pages = Pages(monitor, exposition(monitor, event_target), event_target)
        server = stack.enter_context(Server(host, port, pages))
        scaler: Any = None
        external = None
        if grpc_port is not None:
            from eventhub_checkpoints.cli.serve import external_scaler

            scaler, bound = external_scaler.serve(host, grpc_port, monitor, event_target)
            external = f"{host}:{bound}"
        threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
        stack.callback(server.shutdown)
        if as_json:
            typer.echo(json.dumps({"url": server.url, "external_scaler": external}))
        else:
            typer.echo(f"{server.url}/metrics, /lag.json, /health")
            if external:
                typer.echo(f"{external} for KEDA's external scaler")
        signal.sigwait(ends)
        if scaler is not None:
            scaler.stop(GRACE_SECONDS).wait()


def watch(
    targets: Sequence[Target],
    stack: ExitStack,
    missing: Missing,
    seconds: bool,
    through: str | None,
) -> list[Watched]:
    """Open the stores, each once, and return what to poll.

    Raises:
        ConfigurationError: a target names no store or no hub, or a malformed one.
    """
    opened: list[tuple[Any, Any]] = []
    watched = []
    for target in targets:
        hub = target.address
        # A store may be named by a dict, which cannot be a key.
        store = next((store for named, store in opened if named == target.store), None)
        if store is None:
            store = stack.enter_context(target.open_store())
            opened.append((target.store, store))
        reader = target.address_of(through) if seconds else None
        watched.append(Watched(store, hub, missing, target.expires_after, target.timeout, reader))
    return watched


def need(command: str, package: str, extra: str) -> None:
    """Raise unless a package that a command needs is installed.

    Raises:
        MissingDriverError: it is not.
    """
    try:
        is_missing = importlib.util.find_spec(package) is None
    except ModuleNotFoundError:
        is_missing = True
    if is_missing:
        raise MissingDriverError(
            f"{command} needs {package}: python -m pip install 'eventhub-checkpoints[cli,{extra}]'"
        )


@contextmanager
def blocked_signals() -> Iterator[set[signal.Signals]]:
    """Block SIGTERM and SIGINT in this thread and those that it starts; provide them for `sigwait`.

    A handler that sets a `threading.Event` blocks forever if it interrupts the main thread while
    that holds the event's lock, on its way into `wait`.
    """
    ends = {signal.SIGTERM, signal.SIGINT}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        yield ends
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
