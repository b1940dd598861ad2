"""Command line: `python -m eventhub_checkpoints.localhub` runs the hub in a separate process."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from typing import Any, NoReturn

from eventhub_checkpoints._shared.secrets import masked, quoted
from eventhub_checkpoints._shared.signals import on_stop_signals
from eventhub_checkpoints.localhub.emulator import read_emulator_config
from eventhub_checkpoints.localhub.local import NAMESPACE, LocalHub

_ABOUT = "A local Event Hubs stand-in for trying and testing; never for production."


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    hubs, groups = _hubs_and_groups(parser, options)
    stop = threading.Event()
    with on_stop_signals(stop.set):
        try:
            hub = LocalHub(
                hubs,
                host=options.host,
                port=options.port,
                consumer_groups=groups,
                tls=options.tls,
                namespace=options.namespace,
            ).start()
            bodies = [f"event {number}" for number in range(options.events)]
            for name in hubs if bodies else ():
                for partition in hub.partition_ids(name):
                    hub.publish(name, partition, bodies)
        except (ValueError, OSError, RuntimeError) as error:
            parser.error(str(error))
        try:
            _announce(hub, hubs, options.json)
            stop.wait()
        finally:
            hub.stop()
    return 0


def _hubs_and_groups(
    parser: Parser, options: argparse.Namespace
) -> tuple[dict[str, int], list[str] | dict[str, list[str]] | None]:
    if options.config is not None:
        if options.group:
            parser.error("--group cannot be combined with --config, which names the groups")
        try:
            config = read_emulator_config(options.config)
        except (ValueError, OSError) as error:
            parser.error(f"--config: {error}")
        return config["hubs"], config["consumer_groups"]
    hubs: dict[str, int] = {}
    for name, partitions in options.hub:
        if name.lower() in map(str.lower, hubs):
            parser.error(f"--hub names {quoted(name)} twice")
        hubs[name] = partitions
    return hubs, options.group


class Parser(argparse.ArgumentParser):
    """Argument parser whose error messages mask secrets."""

    def error(self, message: str) -> NoReturn:
        """Print usage and message, and exit with status 2."""
        super().error(masked(message))


def _parser() -> Parser:
    parser = Parser(prog="python -m eventhub_checkpoints.localhub", description=_ABOUT)
    add = parser.add_argument
    hubs = parser.add_mutually_exclusive_group(required=True)
    hubs.add_argument(
        "--hub",
        action="append",
        type=_hub,
        metavar="NAME=PARTITIONS",
        help="a hub to serve; repeatable",
    )
    hubs.add_argument(
        "--config",
        metavar="FILE",
        help="serve the hubs and groups of a configuration file of Azure's Event Hubs emulator",
    )
    add("--events", type=int, default=0, metavar="N", help="events to publish to each partition")
    add(
        "--port",
        type=int,
        default=0,
        help="the port to listen on (default: any free one; the emulator's is 5672)",
    )
    add("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    add(
        "--group",
        action="append",
        metavar="NAME",
        help="a consumer group in addition to $Default; by default every name is admitted",
    )
    add("--namespace", default=NAMESPACE, help="the namespace for clients (default: %(default)s)")
    add("--tls", action="store_true", help="use TLS, with a certificate created for this run")
    add("--json", action="store_true", help="print only one JSON object per hub")
    return parser


def _hub(text: str) -> tuple[str, int]:
    name, _, count = text.partition("=")
    if not name or not count.isdecimal():
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not NAME=PARTITIONS, such as orders=8")
    return name, int(count)


def _describe(hub: LocalHub, name: str, partitions: int) -> dict[str, Any]:
    try:
        connection_string = hub.connection_string(name)
    except RuntimeError:
        # A connection string cannot contain a port for TLS, so clients need the default port.
        connection_string = None
    return {
        "hub": name,
        "partitions": partitions,
        "port": hub.port,
        "connection_string": connection_string,
        "fully_qualified_namespace": hub.namespace,
        "custom_endpoint_address": hub.endpoint,
        "use_tls": hub.tls,
        "connection_verify": hub.ca_file if hub.tls else None,
    }


def _announce(hub: LocalHub, hubs: dict[str, int], as_json: bool) -> None:
    if not as_json:
        print(f"{_ABOUT} Ctrl-C stops it.")
    for name, partitions in hubs.items():
        described = _describe(hub, name, partitions)
        print(json.dumps(described) if as_json else _text(described))
    # A parent process may be waiting for these lines on a pipe.
    sys.stdout.flush()


def _text(described: dict[str, Any]) -> str:
    lines = [f"hub {described['hub']}, {described['partitions']} partitions"]
    if described["connection_string"] is not None:
        lines.append(f"  {described['connection_string']}")
        lines.append("or, for a constant namespace, transport_type=TransportType.Amqp,")
    last = "connection_verify" if described["use_tls"] else "use_tls"
    names = ["fully_qualified_namespace", "custom_endpoint_address", last]
    lines.append("  " + ", ".join(f"{name}={described[name]!r}" for name in names))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
