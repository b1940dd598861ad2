"""What may stand in the query of a SQL store's URL: what is ours, and what the driver takes."""

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from eventhub_checkpoints._shared.suggestions import LONGEST_OPTION, nearest_first
from eventhub_checkpoints.errors import ConfigurationError

OURS = ("namespace", "schema")
OF_THE_DIALECT = {
    "asyncpg": ("prepared_statement_cache_size",),
    "sqlite": (
        *("uri", "timeout", "isolation_level", "detect_types"),
        *("check_same_thread", "cached_statements"),
    ),
}
"""What SQLAlchemy takes from the query. Source: SQLAlchemy 2.0, `pysqlite.py` and `asyncpg.py`,
`create_connect_args`."""
OF_A_FILE_URI = ("cache", "immutable", "mode", "nolock", "psow", "vfs")
"""Source: SQLite, "Uniform Resource Identifiers", section 3.3."""
NO_TEXTS = {"dsn", "loop", "connection_class", "record_class", "server_settings"}
"""Arguments of asyncpg that no text can be."""


def check_options(query: Mapping[str, Any], driver: str) -> None:
    """Refuse an option that the driver would refuse at the first use, or not look at.

    Raises:
        ConfigurationError: there is one; the message lists those that are known, the nearest first.
    """
    known = [*OURS, *KNOWN[driver](query)]
    unknown = [name for name in query if name not in known]
    if not unknown:
        return
    if "@" in str(query) or not all(is_name(name) for name in unknown):
        # An @ and a question mark of the password began host and query; its rest would be shown.
        raise ConfigurationError(
            "the query of the store URL cannot be read; expected names and values, and in the "
            "password special characters percent-encoded"
        )
    name, listed = unknown[0], ", ".join(nearest_first(unknown[0], known))
    raise ConfigurationError(
        f"{name} in the store URL is no option of the store or of {driver}; known are {listed}"
    )


def is_name(text: str) -> bool:
    """Whether it can be an option's name, and not a part of a key or a password."""
    return text.isidentifier() and len(text) <= LONGEST_OPTION


def of_psycopg(query: Mapping[str, Any]) -> list[str]:
    """The keywords of the libpq that is installed."""
    defaults = import_module("psycopg").pq.Conninfo.get_defaults()
    return [option.keyword.decode() for option in defaults]


def of_asyncpg(query: Mapping[str, Any]) -> list[str]:
    """The arguments of its `connect`."""
    arguments = inspect.signature(import_module("asyncpg").connect).parameters
    return [*OF_THE_DIALECT["asyncpg"], *(name for name in arguments if name not in NO_TEXTS)]


def of_sqlite(query: Mapping[str, Any]) -> list[str]:
    """Those of a file's URI need `uri=true` beside them: without it nobody looks at them."""
    return [*OF_THE_DIALECT["sqlite"], *(OF_A_FILE_URI if "uri" in query else ())]


KNOWN: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "psycopg": of_psycopg,
    "asyncpg": of_asyncpg,
    "pysqlite": of_sqlite,
    "aiosqlite": of_sqlite,
}
