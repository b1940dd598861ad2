"""Options that source and sink share: how they are parsed, and the hub with the way to reach it.

Spark passes strings, with names in any case.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar, get_args
from urllib.parse import unquote, urlsplit

from azure.eventhub import TransportType

from eventhub_checkpoints._shared.connection_string import ConnectionString
from eventhub_checkpoints._shared.drivers import is_installed
from eventhub_checkpoints._shared.durations import parse_duration
from eventhub_checkpoints._shared.foreign_json import parse_json
from eventhub_checkpoints._shared.paths import is_file
from eventhub_checkpoints._shared.secrets import holds_secret, quoted
from eventhub_checkpoints._shared.settings import nearest, require
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.receive.address import (
    DEFAULT_CONSUMER_GROUP,
    Address,
    checked_group,
    checked_name,
)
from eventhub_checkpoints.receive.amqp.address import (
    HUB_NAME,
    NAMESPACE,
    HubAddress,
)
from eventhub_checkpoints.receive.credentials import OWN, CredentialClass, CredentialName
from eventhub_checkpoints.receive.position import is_digits
from eventhub_checkpoints.spark.refused_options import REFUSED

Options = Mapping[str, str]
"""The options by name."""

T = TypeVar("T", bound=str)

PREFIX = "eventhubs."
OF_TABLE = "option."
"""Prefix of the OPTIONS of CREATE TABLE among the properties of the table."""

NOT_OF_TABLE = (
    "Spark does not hand over the OPTIONS of CREATE TABLE when the table is used: read it by "
    "spark.read.options(...).table(...) or SELECT * FROM ... WITH (...), or use CREATE TEMPORARY "
    "VIEW; write by df.write"
)
PATH = ("path", "paths")
"""Options that Spark makes of the arguments of `load`, `save` and `start`."""

FROM_ENVIRONMENT = "env:"
KAFKA = "kafka."
"""Prefix of the options that are passed on to librdkafka as its settings."""

REASONS = {name.lower(): (name, reason) for name, reason in REFUSED.items()}

ARGUMENT = "credential."
"""Prefix of the options that are passed on as arguments of the credential's class."""

PASSED_ON = (KAFKA, ARGUMENT)

NETWORK = ("transportType", "httpProxy", "connectionVerify", "customEndpointAddress")
"""Options of the AMQP client's way to the hub."""

CALLBACK = ("useAadAuth", "aadAuthCallback", "aadAuthCallbackParams")
"""The JVM connector's options for a credential."""

HUB = (
    *("connectionString", "fullyQualifiedNamespace", "eventHubName", "credential"),
    *CALLBACK,
    *NETWORK,
)
"""Options that name the hub, and say how to reach it."""


def known_options(options: Options, names: Sequence[str]) -> dict[str, str]:
    """Return the options by their names as in `names`; those with `PASSED_ON` in lower case.

    For CREATE TABLE, Spark hands over the properties of the table: the options come twice, with and
    without the prefix `OF_TABLE`, among others such as the owner.

    Raises:
        ConfigurationError: a name is unknown, has another name here, belongs to `writeStream`, or
            is set twice with different values. The message suggests the nearest name, and never
            shows a value.
    """
    spelled = {name.lower(): name for name in names}
    if of_table := [option for option in options if option.lower().startswith(OF_TABLE)]:
        options = {option: options[option] for option in of_table}
    known: dict[str, str] = {}
    for option, value in options.items():
        bare = option.lower().removeprefix(OF_TABLE).removeprefix(PREFIX)
        if bare == "checkpointlocation":
            raise ConfigurationError(
                "the option checkpointLocation belongs to writeStream, not to readStream"
            )
        if bare in PATH:
            raise ConfigurationError(
                "format('eventhubs') has no path; call load(), save() or start() without one, and "
                "name the hub by the option connectionString or eventHubName"
            )
        if bare in REASONS and bare not in spelled:
            raise ConfigurationError("the option {} is refused: {}".format(*REASONS[bare]))
        if bare not in spelled and not bare.startswith(PASSED_ON):
            shown = quoted(option) if holds_secret(option) else option
            meant = nearest(bare, names)
            hint = f"did you mean {meant}?" if meant else f"expected one of {', '.join(names)}"
            raise ConfigurationError(
                f"the option {shown} is not known to format('eventhubs'); {hint}"
            )
        name = spelled.get(bare, bare)
        if known.setdefault(name, value) != value:
            raise ConfigurationError(f"the option {name} is set twice, with two values")
    return known


def from_environment(name: str, value: str) -> str:
    """Return the value, or for `env:NAME` the value of that environment variable.

    With `env:`, a job does not contain the secret itself.

    Raises:
        ConfigurationError: Spark's driver has no such environment variable, or it is empty.
    """
    if not value.startswith(FROM_ENVIRONMENT):
        return value
    variable = value.removeprefix(FROM_ENVIRONMENT)
    secret = os.environ.get(variable)
    if not secret:
        raise ConfigurationError(
            f"the option {name} names the environment variable {quoted(variable)}, which Spark's "
            "driver does not have; set it before the session is started"
        )
    return secret


def parse_choice(options: Options, name: str, default: T, choices: tuple[T, ...]) -> T:
    """Return an option that must be one of `choices`; its case does not matter."""
    text = options.get(name, default).strip().lower()
    for choice in choices:
        if text == choice.lower():
            return choice
    several = ", ".join(choices[:-1])
    raise ConfigurationError(f"{name} is {quoted(text)}; expected {several} or {choices[-1]}")


def parse_seconds(
    options: Options, name: str, default: float, *, needs_unit: bool = False
) -> float:
    """Parse a duration; see `parse_duration`."""
    if name not in options:
        return default
    return parse_duration(options[name], name, needs_unit=needs_unit)


def parse_count(options: Options, name: str, default: int, least: int = 1) -> int:
    """Parse a whole number of at least `least`."""
    text = options.get(name, str(default)).strip()
    if not (is_digits(text) and int(text) >= least):
        raise ConfigurationError(
            f"{name} is {quoted(text)}; expected a whole number of at least {least}"
        )
    return int(text)


def parse_address(options: Options) -> Address:
    """Return the address to read from, for the configured transport.

    Raises:
        ConfigurationError: the options name none, or more than one, or one is malformed.
    """
    if parse_choice(options, "transport", "amqp", ("amqp", "kafka")) == "kafka":
        return parse_kafka_address(options)
    if unused := [name for name in options if name.lower().startswith("kafka")]:
        raise ConfigurationError(f"the option {unused[0]} needs transport=kafka")
    return parse_hub(options)


def parse_hub(options: Options) -> HubAddress:
    """Return the hub's address, from a connection string, or from its names and a credential.

    Raises:
        ConfigurationError: neither or both are set, or one is malformed.
    """
    group = parse_group(options, "consumerGroup", DEFAULT_CONSUMER_GROUP)
    network, credential = parse_network(options), parse_credential(options)
    if credential:
        options = with_names(options)
    for option, expected in (("fullyQualifiedNamespace", NAMESPACE), ("eventHubName", HUB_NAME)):
        if options.get(option):
            checked_name(option, options[option], expected)
    connection_string = options.get("connectionString")
    by_name = [name for name in ("fullyQualifiedNamespace", *CREDENTIAL) if name in options]
    if connection_string and not by_name:
        return HubAddress.from_connection_string(
            from_environment("connectionString", connection_string),
            group,
            eventhub_name=options.get("eventHubName"),
            **network,
        )
    if connection_string:
        raise ConfigurationError(
            f"use the option connectionString or {' and '.join(by_name)}, not both"
        )
    required = ("fullyQualifiedNamespace", "eventHubName", "credential")
    if not by_name:
        raise ConfigurationError(
            f"the option connectionString is missing; set it, or {', '.join(required)}"
            f"{'' if options else f'. {NOT_OF_TABLE}'}"
        )
    known = {**options, "credential": credential}
    if missing := [name for name in required if not known.get(name)]:
        raise ConfigurationError(
            f"{' and '.join(by_name)} also needs the option {' and '.join(missing)}"
        )
    namespace, hub = options["fullyQualifiedNamespace"], options["eventHubName"]
    return HubAddress.from_credential(namespace, hub, credential, group, **network)


def with_names(options: Options) -> Options:
    """Return the options with the names that a connection string without a key contains.

    The JVM connector's users pass one of these together with a credential.
    """
    if not options.get("connectionString"):
        return options
    text = from_environment("connectionString", options["connectionString"])
    parts = ConnectionString.parse(text)
    if not parts.namespace or parts.key or parts.signature:
        return options
    names = {"fullyQualifiedNamespace": parts.namespace, "eventHubName": parts.hub}
    return {**names, **{name: options[name] for name in options if name != "connectionString"}}


CREDENTIAL = ("credential", "aadAuthCallback")
"""Options that name a credential."""

JVM_CREDENTIAL = (
    "which is not package.module:Class of a Python class; a class of the JVM cannot be called. Set "
    "credential=ClientSecretCredential with credential.tenant_id, credential.client_id and "
    "credential.client_secret, which needs the package azure-identity, or a class of your own "
    "whose get_token returns an azure.core.credentials.AccessToken"
)


def parse_credential(options: Options) -> CredentialName:
    """Return what names the credential; "" if no option does.

    Raises:
        ConfigurationError: the options contradict each other, or an argument has no name.
    """
    named = [name for name in CREDENTIAL if options.get(name)]
    if len(named) > 1:
        raise ConfigurationError(f"use the option {' or '.join(named)}, not both")
    default = "true" if named else "false"
    is_used = parse_choice(options, "useAadAuth", default, ("true", "false")) == "true"
    if is_used and not named:
        raise ConfigurationError(
            "useAadAuth=true needs the option credential, such as DefaultAzureCredential"
        )
    arguments = parse_arguments(options)
    if not named:
        if arguments:
            raise ConfigurationError(f"the option {ARGUMENT}{arguments[0][0]} needs credential")
        return ""
    if not is_used:
        raise ConfigurationError(f"useAadAuth=false contradicts {named[0]}; leave one of them out")
    text = from_environment(named[0], options[named[0]])
    if named == ["aadAuthCallback"] and not OWN.fullmatch(text):
        raise ConfigurationError(f"aadAuthCallback is {quoted(text)}, {JVM_CREDENTIAL}")
    return CredentialClass(text, arguments) if arguments else text


def parse_arguments(options: Options) -> tuple[tuple[str, str], ...]:
    """Return the arguments of the credential's class, by name.

    Raises:
        ConfigurationError: a name cannot be one, or the connector's parameters are malformed.
    """
    arguments = {
        name.removeprefix(ARGUMENT): from_environment(name, value)
        for name, value in options.items()
        if name.startswith(ARGUMENT)
    }
    if name := next((name for name in arguments if not name.isidentifier()), None):
        raise ConfigurationError(
            f"the option {quoted(ARGUMENT + name)} does not name an argument; expected a name such "
            "as credential.tenant_id"
        )
    option = "aadAuthCallbackParams"
    if option in options:
        parameters = json_object(from_environment(option, options[option]))
        if parameters is None or not all(isinstance(value, str) for value in parameters.values()):
            raise ConfigurationError(
                f'{option} is malformed; expected JSON such as {{"name": "value"}}'
            )
        arguments |= {name: from_environment(option, value) for name, value in parameters.items()}
    return tuple(sorted(arguments.items()))


def json_object(text: str) -> dict[str, Any] | None:
    """Return a JSON object; None if the string is not one, because it may be a secret."""
    with suppress(ValueError):
        value = parse_json(text)
        return value if isinstance(value, dict) else None
    return None


def parse_network(options: Options) -> dict[str, Any]:
    """Return the AMQP client's settings of the way to the hub; it decides what is not set.

    Raises:
        ConfigurationError: one is malformed, they contradict each other, or a file or package is
            missing on this machine.
    """
    settings: dict[str, Any] = {}
    if "transportType" in options:
        kind = parse_choice(options, "transportType", "", tuple(TransportType.__members__))
        settings["transport_type"] = TransportType[kind]
    if "httpProxy" in options:
        settings["http_proxy"] = parse_proxy(from_environment("httpProxy", options["httpProxy"]))
    if "connectionVerify" in options:
        settings["connection_verify"] = parse_file(options, "connectionVerify")
    if "customEndpointAddress" in options:
        settings["custom_endpoint_address"] = parse_endpoint(options, "customEndpointAddress")
    if settings.keys() & {"http_proxy", "custom_endpoint_address"}:
        # As the client would do later: too late for some of its own settings.
        settings.setdefault("transport_type", TransportType.AmqpOverWebsocket)
    over_websocket = settings.get("transport_type") is TransportType.AmqpOverWebsocket
    if "http_proxy" in settings and not over_websocket:
        raise ConfigurationError(
            "an HTTP proxy needs transportType=AmqpOverWebsocket; leave transportType out, or set "
            "this value"
        )
    if over_websocket and not is_installed("websocket"):
        raise ConfigurationError(
            "AMQP over WebSockets needs a package on the driver and on each executor: python -m "
            "pip install websocket-client"
        )
    return settings


PROXY_STRINGS = ("proxy_hostname", "username", "password")


def parse_proxy(text: str) -> dict[str, Any]:
    """Return the client's `http_proxy`, from a URL, or from its JSON.

    Raises:
        ConfigurationError: it is malformed. The message does not show it, for it may be a secret.
    """
    proxy = json_object(text) or proxy_of_url(text)
    port, texts = proxy.get("proxy_port"), [proxy.get(name, "") for name in PROXY_STRINGS]
    is_usable = proxy.get("proxy_hostname") and type(port) is int
    if not (is_usable and all(isinstance(each, str) for each in texts)):
        raise ConfigurationError(
            "httpProxy is malformed; expected http://HOST:PORT or http://USER:PASSWORD@HOST:PORT, "
            "with %40 for @ and so on, or JSON with proxy_hostname, proxy_port, username and "
            "password"
        )
    return proxy


def proxy_of_url(text: str) -> dict[str, Any]:
    """Return the client's `http_proxy` of a URL; {} if it is malformed."""
    with suppress(ValueError):
        url = urlsplit(text if "://" in text else f"http://{text}")
        named = {"proxy_hostname": url.hostname, "proxy_port": url.port}
        account = {"username": url.username, "password": url.password}
        if url.scheme == "http" and url.path in ("", "/") and not url.query:
            return named | {key: unquote(value) for key, value in account.items() if value}
    return {}


def parse_file(options: Options, name: str) -> str:
    """Return the path of a file, after checking that this machine has it."""
    path = options[name]
    if not is_file(path):
        raise ConfigurationError(
            f"{name} is {quoted(path)}, which is not a file on this machine; expected the path of "
            "a file of certificates (PEM), which the driver and each executor must have"
        )
    return path


def parse_endpoint(options: Options, name: str) -> str:
    """Return an address through which the hub is reached, as the client accepts it."""
    text, is_usable = options[name].strip(), False
    with suppress(ValueError):
        url = urlsplit(text if "//" in text else f"sb://{text}")
        is_usable = bool(url.hostname) and url.port != 0 and not holds_secret(text)
    require(name, text, is_usable, "an address such as sb://gateway.example.net:443")
    return text.rstrip("/")


def parse_kafka_address(options: Options) -> Address:
    """Return the hub's address if a connection string or credential is set, else the topic's.

    Raises:
        ConfigurationError: the options name neither, or one is malformed or reserved.
        MissingDriverError: Kafka's client is not installed.
    """
    from eventhub_checkpoints.receive.kafka.address import KafkaAddress, kafka_settings
    from eventhub_checkpoints.receive.kafka.records import HeaderForm

    settings = {
        name.removeprefix(KAFKA): from_environment(name, value)
        for name, value in options.items()
        if name.startswith(KAFKA)
    }
    forms: tuple[HeaderForm, ...] = get_args(HeaderForm)
    is_hub = bool(options.keys() & {"connectionString", *CREDENTIAL})
    if "bootstrap.servers" not in settings or is_hub:
        headers = parse_choice(options, "kafkaHeaders", "auto", forms)
        return KafkaAddress.of_hub(parse_hub(options), settings, headers)
    if unused := [name for name in options if name in CALLBACK or name.startswith(ARGUMENT)]:
        raise ConfigurationError(f"the option {unused[0]} needs credential")
    return KafkaAddress.of_topic(
        options.get("eventHubName", ""),
        {**kafka_settings(parse_network(options)), **settings},
        parse_group(options, "consumerGroup", DEFAULT_CONSUMER_GROUP),
        namespace=options.get("fullyQualifiedNamespace", ""),
        headers=parse_choice(options, "kafkaHeaders", "text", forms),
    )


def parse_group(options: Options, name: str, default: str) -> str:
    """Return the name of a consumer group."""
    return checked_group(name, options.get(name, default))
