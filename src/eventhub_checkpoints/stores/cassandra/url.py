"""Keyspace URLs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import parse_qsl, unquote

from eventhub_checkpoints._shared.secrets import holds_secret, quoted
from eventhub_checkpoints._shared.settings import LONGEST_OPTION, nearest_first, require_text
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.stores.backends import CASSANDRA
from eventhub_checkpoints.stores.suggestions import did_you_mean

EXPECTED = "cassandra://[user:password@]host[:port][,host..]/keyspace[?datacenter=NAME]"
PORT = 9042
OPTIONS = ("datacenter", "namespace")


@dataclass(frozen=True, slots=True)
class Address:
    """Components of a keyspace's URL.

    Attributes:
        contact_points: hosts and ports of some nodes; the driver finds the others.
        keyspace: None if the URL does not name one.
        password: never shown.
        datacenter: its nodes are used; None: the datacenter of the contact points.
    """

    contact_points: tuple[tuple[str, int], ...]
    keyspace: str | None
    username: str | None
    password: str | None
    datacenter: str | None

    @classmethod
    def parse(cls, url: str) -> Self:
        """Parse `cassandra://[user:password@]host[:port][,host..]/keyspace[?datacenter=..]`.

        Raises:
            ConfigurationError: it is not such a URL; user and password are not repeated.
        """
        require_text("the store URL", url, EXPECTED)
        scheme, slashes, rest = url.partition("://")
        if not slashes or scheme.lower() not in CASSANDRA.schemes:
            hint = did_you_mean(url, CASSANDRA.schemes)
            raise ConfigurationError(f"the store URL is not an address: expected {EXPECTED}{hint}")
        rest, _, query = rest.partition("?")
        authority, _, path = rest.partition("/")
        userinfo, at, hosts = authority.rpartition("@")
        username, colon, password = userinfo.partition(":")
        if at and not (username and colon and password):
            raise ConfigurationError(f"user and password must both be given: expected {EXPECTED}")
        options = checked_query(query)
        names = {name for name in (unquote(path.strip("/")), options.get("namespace")) if name}
        if len(names) > 1:
            raise ConfigurationError(
                f"the URL names two keyspaces, {' and '.join(sorted(names))}; give one"
            )
        return cls(
            tuple(contact_point(host) for host in hosts.split(",")),
            names.pop() if names else None,
            unquote(username) if at else None,
            unquote(password) if at else None,
            options.get("datacenter"),
        )

    def settings(
        self, credential: tuple[str, str] | None, settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Merge the URL's parts and the keyword arguments into constructor arguments.

        Raises:
            ConfigurationError: the two contradict each other.
        """
        arguments = dict(settings)
        if credential is not None:
            if self.username is not None:
                raise ConfigurationError(
                    "user and password are in the URL and in credential; pass them once"
                )
            arguments["username"], arguments["password"] = checked_credential(credential)
        own = {
            "namespace": self.keyspace,
            "username": self.username,
            "password": self.password,
            "datacenter": self.datacenter,
        }
        for name, value in own.items():
            if value is not None and arguments.setdefault(name, value) != value:
                raise ConfigurationError(
                    f"{name} has one value in the URL and another as an argument; pass one of them"
                )
        return arguments

    def __repr__(self) -> str:
        return f"Address({self.contact_points}, {self.keyspace!r}, datacenter={self.datacenter!r})"

    __str__ = __repr__


def checked_credential(credential: Any) -> tuple[str, str]:
    """Return a user and a password.

    Raises:
        ConfigurationError: the credential is not a pair of strings; the message omits it.
    """
    if (
        isinstance(credential, tuple | list)
        and len(credential) == 2
        and all(isinstance(part, str) and part for part in credential)
    ):
        return credential[0], credential[1]
    raise ConfigurationError(
        f"credential is of type {type(credential).__name__}; "
        "expected user and password, two strings"
    )


def checked_query(query: str) -> dict[str, str]:
    """Parse the query of the URL.

    Raises:
        ConfigurationError: an option is unknown or repeated.
    """
    pairs = parse_qsl(query, keep_blank_values=True)
    options = dict(pairs)
    # Neither values nor invalid names are shown: they may be part of a password with a ? in it.
    if not all(name.isidentifier() and len(name) <= LONGEST_OPTION for name in options):
        raise ConfigurationError(
            f"the URL's query is invalid; expected {EXPECTED}, with a ? in a password as %3F"
        )
    for name in options:
        if name not in OPTIONS:
            known = ", ".join(nearest_first(name, OPTIONS))
            raise ConfigurationError(
                f"the URL has no option {name}; expected one of {known}; pass all others "
                "as keyword arguments"
            )
    if len(options) < len(pairs):
        raise ConfigurationError(f"the URL has an option twice; expected {EXPECTED}")
    return options


def contact_point(text: Any, port: int = PORT) -> tuple[str, int]:
    """Parse a host and port: `host`, `host:port`, `[IPv6]`, `[IPv6]:port` or a pair.

    Raises:
        ConfigurationError: it is none of these.
    """
    if isinstance(text, tuple) and len(text) == 2:
        host, number = str(text[0]), str(text[1])
    elif isinstance(text, str) and text.startswith("["):
        host, _, number = text[1:].partition("]")
        number = number.removeprefix(":")
    elif isinstance(text, str) and text.count(":") > 1:
        host, number = text, ""
    else:
        host, _, number = str(text).partition(":")
    number = number or str(port)
    # int() would accept signs, spaces and underscores.
    is_host = host and {*"=;/@?# "}.isdisjoint(host) and not holds_secret(host)
    is_number = number.isascii() and number.isdigit() and len(number) <= 5
    if not is_host or not is_number or not 0 < int(number) < 65536:
        raise ConfigurationError(f"{quoted(text)} is not a host with a port; expected {EXPECTED}")
    return host, int(number)
