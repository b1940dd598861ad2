"""`ehcp serve`: options, the groups that it polls, and its life."""

import json
import logging
import signal
import threading
from contextlib import ExitStack
from typing import Annotated, Any

import typer

from eventhub_checkpoints._shared.drivers import require_package
from eventhub_checkpoints._shared.signals import STOP_SIGNALS, blocked_stop_signals
from eventhub_checkpoints.cli.durations import duration_option
from eventhub_checkpoints.cli.numbers import number_option
from eventhub_checkpoints.cli.status import MissingOption
from eventhub_checkpoints.cli.target import LagThrough, Target, on_targets, polled_groups
from eventhub_checkpoints.operations.monitor import INTERVAL, Monitor
from eventhub_checkpoints.operations.scale import DEMAND_HOLD, TARGET

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
        int, number_option(least=0, most=65535, help="Port for HTTP; 0 takes a free one.")
    ] = PORT,
    grpc_port: Annotated[
        int | None,
        number_option(
            least=0, most=65535, help="Port for KEDA's external scaler. [default: it is not served]"
        ),
    ] = None,
    interval: Annotated[
        float, duration_option(least=0.1, help="Time between two polls.")
    ] = INTERVAL,
    event_target: Annotated[
        int, number_option("--target", least=1, help="Unprocessed events for each replica.")
    ] = TARGET,
    hold: Annotated[
        float,
        duration_option(least=0, help="Time until lower demand for replicas counts."),
    ] = DEMAND_HOLD,
    missing: MissingOption = "earliest",
    seconds: Annotated[
        bool, typer.Option(help="Read the first unprocessed events, for the lag in seconds.")
    ] = True,
    through: LagThrough = None,
    partitions: Annotated[
        bool, typer.Option(help="Publish metrics of each partition, not only those of groups.")
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the addresses as one line of JSON.")
    ] = False,
) -> None:
    """Serve the lag of groups to Prometheus and to KEDA.

    It listens for GET requests of /metrics, /lag.json and /health, and with --grpc-port for KEDA's
    calls. --group and --profile can be repeated. SIGTERM and Ctrl-C end it.
    """
    require_package("serve", "prometheus_client", "metrics")
    if grpc_port is not None:
        require_package("serve", "grpc", "keda")
        require_package("serve", "google.protobuf", "keda")
    # Imported here, because other commands do not need these packages.
    from eventhub_checkpoints.cli.serve.metrics import exposition
    from eventhub_checkpoints.cli.serve.web import Pages, Server

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    with ExitStack() as stack:
        stack.enter_context(blocked_stop_signals())
        polled = polled_groups(targets, stack, missing, through, has_seconds=seconds)
        monitor = Monitor(polled, interval=interval, hold=hold)
        pages = Pages(
            monitor, exposition(monitor, event_target, has_partitions=partitions), event_target
        )
        server = stack.enter_context(Server(host, port, pages))
        scaler: Any = None
        external = None
        if grpc_port is not None:
            from eventhub_checkpoints.cli.serve import external_scaler

            scaler, bound = external_scaler.serve(host, grpc_port, monitor, event_target)
            external = f"{host}:{bound}"
        # Only now: no hub is asked if an address is not available.
        stack.enter_context(monitor)
        threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
        stack.callback(server.shutdown)
        if as_json:
            typer.echo(json.dumps({"url": server.url, "external_scaler": external}))
        else:
            typer.echo(f"{server.url}/metrics, /lag.json, /health")
            if external:
                typer.echo(f"{external} for KEDA's external scaler")
        signal.sigwait(STOP_SIGNALS)
        if scaler is not None:
            scaler.stop(GRACE_SECONDS).wait()
