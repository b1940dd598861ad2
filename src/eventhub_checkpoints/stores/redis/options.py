"""What the query of a Redis URL may say: only the driver knows, and it tells at its first connect.

Source: redis-py 5.3.0 and 8.1.0, `redis/connection.py` and `redis/asyncio/connection.py`: what
`parse_url` finds goes to the constructors of the pool and of its connections.
"""

import inspect
from collections.abc import Container
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from eventhub_checkpoints._shared.secrets import masked, quoted
from eventhub_checkpoints._shared.suggestions import nearest_first
from eventhub_checkpoints.errors import MissingDriverError

try:
    from redis.exceptions import RedisError
except ImportError as error:
    raise MissingDriverError.of_extra("the Redis store", "redis") from error

OUR_OWN = "namespace"
TEXTS = {
    *("client_name", "lib_name", "lib_version", "username", "password"),
    *("decode_responses", "encoding", "encoding_errors"),
    *("ssl_ca_certs", "ssl_ca_data", "ssl_ca_path", "ssl_cert_reqs", "ssl_certfile", "ssl_ciphers"),
    *("ssl_keyfile", "ssl_password"),
    *("ssl_ocsp_expected_cert", "ssl_validate_ocsp", "ssl_validate_ocsp_stapled"),
}
"""Beside those that the driver has a parser for. What else its constructors take is an object,
which no URL can hold."""
FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")


def check_options(url: str, parsed: Container[str], pool: Any) -> None:
    """Refuse what could only fail at the first connect.

    Args:
        url: whose query it is.
        parsed: the options that the driver has a parser for.
        pool: as the driver made it from the URL.

    Raises:
        ValueError: an option is not known, as one of a URL, or its value cannot be used.
    """
    check_names(url, parsed, pool)
    try:
        pool.connection_class(**pool.connection_kwargs)  # it does not connect yet
    except (TypeError, RedisError) as error:
        said = masked(str(error))
    else:
        return
    # Not chained: the driver may repeat the value of an option.
    raise ValueError(said)


def check_names(url: str, parsed: Container[str], pool: Any) -> None:
    """Refuse an option that is not known, and a file that is not there; as `check_options`."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    taken = parameters(type(pool)) | parameters(pool.connection_class)
    known = sorted({one for one in taken if one in parsed or one in TEXTS} | {OUR_OWN})
    for name in options:
        if parts.scheme == "redis" and name in TEXTS and name.startswith("ssl_"):
            raise ValueError(f"{name} is for TLS; expected it in a URL that begins with rediss://")
        if name not in known:
            names = ", ".join(nearest_first(name, known))
            raise ValueError(f"{name} is not known; known are {names}")
    for name in FILES:
        if name in options and not Path(options[name]).exists():
            raise ValueError(f"{name} is {quoted(options[name])}, and nothing has this path")


def parameters(kind: type) -> set[str]:
    """What a class and those above it take by name when they are made."""
    makers = [vars(one)["__init__"] for one in kind.__mro__ if "__init__" in vars(one)]
    return {name for maker in makers for name in inspect.signature(maker).parameters}
