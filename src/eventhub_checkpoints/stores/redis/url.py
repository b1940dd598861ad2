"""Redis URLs, the options of their query, and the user of a token."""

import base64
import inspect
import re
from collections.abc import Container
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from redis.exceptions import RedisError

from eventhub_checkpoints._shared.error_messages import message_of
from eventhub_checkpoints._shared.foreign_json import parse_json
from eventhub_checkpoints._shared.paths import exists
from eventhub_checkpoints._shared.secrets import holds_secret, quoted
from eventhub_checkpoints._shared.settings import LONGEST_OPTION, nearest_first
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.stores.backends import REDIS
from eventhub_checkpoints.stores.connections import given_once
from eventhub_checkpoints.stores.suggestions import did_you_mean

DEFAULT_NAMESPACE = "eventhub-checkpoints"
ENDED = re.compile(r"reset by peer|closed by (?:remote|server)|WinError 1005[34]", re.IGNORECASE)
EXPECTED = "redis://[USER:PASSWORD@]HOST[:PORT][/NUMBER OF DATABASE], or rediss:// for TLS"


class RedisUrl(NamedTuple):
    """A redis-py URL, separated from the store's own options.

    Attributes:
        driver_url: for redis-py: without `namespace` and `audience`.
        username: of the URL, or `""`.
        namespace: of the URL's query, or None.
        audience: of the URL's query, or None.
        host: the server, without its port.
        address: scheme, server and database, without any secret; for messages.
    """

    driver_url: str
    username: str
    namespace: str | None
    audience: str | None
    host: str
    address: str

    @classmethod
    def parse(cls, url: str) -> Self:
        """Parse `redis://[[USER]:[PASSWORD]@]HOST[:PORT][/DATABASE][?OPTION=..]`.

        Raises:
            ConfigurationError: it is not such a URL; the message does not repeat it.
        """
        if not isinstance(url, str):
            kind = "None" if url is None else f"of type {type(url).__qualname__}"
            raise ConfigurationError(
                f"this is not the URL of a Redis server, but {kind}; expected {EXPECTED}; a ready "
                "client is passed as client="
            )
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
            query = parse_qsl(parts.query, keep_blank_values=True)
            database = parts.path.strip("/")
        except ValueError:
            raise wrong_url(url) from None  # its message repeats the URL
        names_database = host and not parts.fragment and (not database or database.isdecimal())
        if parts.scheme not in REDIS.schemes or not names_database:
            raise wrong_url(url)
        if not all(key.isidentifier() and len(key) <= LONGEST_OPTION for key, _ in query):
            raise wrong_url(url)  # part of a password that contains an unquoted ?
        if holds_secret(host):
            raise wrong_url(url)
        own = {key: value for key, value in query if key in OUR_OWN and value}
        rest = urlencode([pair for pair in query if pair[0] not in OUR_OWN])
        server = f"[{host}]" if ":" in host else host
        # The driver uses the first one, in preference to the path.
        path = next((f"/{value}" for key, value in query if key == "db" and value), parts.path)
        return cls(
            urlunsplit(parts._replace(query=rest)),
            unquote(parts.username or ""),
            own.get("namespace"),
            own.get("audience"),
            host,
            f"{parts.scheme}://{server}{f':{port}' if port else ''}{path}",
        )

    @property
    def has_password(self) -> bool:
        """Return whether the URL contains a password."""
        return urlsplit(self.driver_url).password is not None

    def without_user(self) -> str:
        """Return the driver's URL without user and password, for a credential provider."""
        parts = urlsplit(self.driver_url)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def other_scheme(address: str, error: Exception) -> str:
    """Return a hint about the URL's scheme, for a server that was reached and has never answered.

    A server that requires TLS closes a plain connection at once; one without TLS waits for the end
    of a command.
    """
    if address.startswith("rediss:"):
        return "; does this port speak TLS? Else the URL begins with redis://"
    if address.startswith("redis:") and ENDED.search(str(error)):
        return "; does this port want TLS? Then the URL begins with rediss://"
    return ""


def wrong_url(url: object) -> ConfigurationError:
    """Return the error for an invalid Redis URL."""
    return ConfigurationError(
        f"this is not the URL of a Redis server; expected {EXPECTED}; "
        f"characters such as # / ? @ in a password are written as {quote('#/?@', safe='')}"
        + did_you_mean(url, REDIS.schemes)
    )


def checked_namespace(namespace: str | None, of_url: str | None = None) -> str:
    """Return the prefix of the keys: the argument, that of the URL, or the default.

    Raises:
        ConfigurationError: it cannot be part of a key, or the two differ.
    """
    named = given_once("namespace", namespace, of_url)
    chosen = DEFAULT_NAMESPACE if named is None else named
    if (
        not isinstance(chosen, str)
        or not chosen.isprintable()
        or not chosen
        or not {*"{}:/ "}.isdisjoint(chosen)
        or holds_secret(chosen)
    ):
        raise ConfigurationError(
            f"namespace is {quoted(chosen)}; expected a string without braces, colons, slashes and "
            "spaces"
        )
    return chosen


def login(username: str, secret: str) -> tuple[str] | tuple[str, str]:
    """Return the arguments of `AUTH`, with the user of the URL, else that of a token, if any."""
    name = username or object_id(secret)
    return (name, secret) if name else (secret,)


def object_id(token: str) -> str:
    """Return the claim `oid` of a JSON web token, the user name in Azure's Redis; `""` if none.

    The token is not verified: the server does that.
    """
    try:
        _, payload, _ = token.split(".")
        padded = payload + "=" * (-len(payload) % 4)
        claims = parse_json(base64.b64decode(padded, altchars="-_", validate=True))
    except ValueError:
        return ""
    user = claims.get("oid") if isinstance(claims, dict) else None
    return user if isinstance(user, str) else ""


OUR_OWN = ("namespace", "audience")
STRINGS = {
    *("client_name", "lib_name", "lib_version", "username", "password"),
    *("decode_responses", "encoding", "encoding_errors"),
    *("ssl_ca_certs", "ssl_ca_data", "ssl_ca_path", "ssl_cert_reqs", "ssl_certfile", "ssl_ciphers"),
    *("ssl_keyfile", "ssl_password"),
    *("ssl_ocsp_expected_cert", "ssl_validate_ocsp", "ssl_validate_ocsp_stapled"),
}
"""String options, in addition to those that the driver has a parser for. All other arguments of its
constructors are objects, which no URL can hold.
"""
FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")


def check_options(url: str, parsed: Container[str], pool: Any) -> None:
    """Refuse options that could only fail at the first connect.

    Args:
        url: the URL with the query.
        parsed: the options that the driver has a parser for.
        pool: the pool that the driver created from the URL.

    Raises:
        ValueError: an option is not known in a URL, or its value is invalid.
    """
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    kinds = {*type(pool).__mro__, *pool.connection_class.__mro__} - {object}
    taken = {name for kind in kinds for name in inspect.signature(kind.__init__).parameters}
    known = sorted({name for name in taken if name in parsed or name in STRINGS} | {*OUR_OWN})
    for name, value in options.items():
        if parts.scheme == "redis" and name in STRINGS and name.startswith("ssl_"):
            raise ValueError(f"{name} needs TLS; use a URL that begins with rediss://")
        if name not in known:
            names = ", ".join(nearest_first(name, known))
            raise ValueError(f"{name} is not an option; expected one of {names}")
        if name in FILES and not exists(value):
            raise ValueError(f"{name} is {quoted(value)}, and this path does not exist")
    try:
        pool.connection_class(**pool.connection_kwargs)  # does not connect yet
    except (TypeError, RedisError) as error:
        problem = message_of(error)
    else:
        return
    # Not chained: the driver may repeat the value of an option.
    raise ValueError(problem)
