"""Registry that opens stores by URL, or by a mapping such as a table of a configuration file.

The scheme of a URL selects an entry point of the group `eventhub_checkpoints.stores` (or
`eventhub_checkpoints.aio_stores`); other distributions can add entry points. The name is the
scheme, the value a callable that takes `(url, *, credential=None, **settings)` and returns a store.
A scheme such as `postgresql+asyncpg`, if no entry point has it, selects that of `postgresql`.
"""

import importlib
import re
import sys
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from inspect import iscoroutine, iscoroutinefunction
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.error_messages import message_of
from eventhub_checkpoints._shared.secrets import holds_secret, quoted
from eventhub_checkpoints._shared.settings import kind_of, nearest_first
from eventhub_checkpoints.abilities import FullCheckpointStore
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.stores._sync.hooks import log
from eventhub_checkpoints.stores.backends import BLOB, UNSUPPORTED, missing_driver_of, scheme_of
from eventhub_checkpoints.stores.suggestions import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

GROUP = "eventhub_checkpoints.stores"
PREFIX = re.compile(r"[?&](prefix=(?:[A-Za-z0-9._/-]|%2[Ff])+)(?=&|$)")
METHODS = ("list_ownership", "claim_ownership", "list_checkpoints", "update_checkpoint")
"""Methods that the client calls. Source: azure-eventhub 5.15.1, `CheckpointStore`."""


@with_checked_arguments
def open_store(
    url: str | Mapping[str, Any], *, credential: Any = None, **settings: Any
) -> FullCheckpointStore:
    """Open a store by URL or mapping; it connects on first use.

    Args:
        url: a URL, or a mapping with `backendType` and other keys (see the page on configuration).
            The scheme of the URL selects the store: `memory:`, `sqlite:///FILE` and so on, as the
            page on stores lists them; a scheme that another installed package adds; or
            `package.module:factory`, a callable without arguments.
        credential: for the backend; see `from_url` of the store.
        **settings: passed to the store; see `StoreSettings`.

    Returns:
        A store for the synchronous client; every store of this package is a `FullCheckpointStore`.

    Raises:
        ConfigurationError: the scheme, factory or key does not exist (the message lists those that
            do), or the result is not a store for `azure.eventhub`.
        MissingDriverError: the backend's extra is not installed.
    """
    store = opened(GROUP, url, credential, settings)
    if is_async_store(store, url):
        raise ConfigurationError(
            f"{shown(url)} makes an async store; open it with eventhub_checkpoints.aio.open_store"
        )
    return cast("FullCheckpointStore", store)


def opened(
    group: str, url: str | Mapping[str, Any], credential: Any, settings: dict[str, Any]
) -> Any:
    """Find the factory for a URL among the entry points of a group, and call it."""
    if isinstance(url, Mapping):
        return configured(group, url, credential, settings)
    if not isinstance(url, str) or url == "":
        type_name = "None" if url is None else f"of type {kind_of(url)}"
        is_store = hasattr(url, "update_checkpoint")
        question = "is it a store already" if is_store else "is the environment variable set"
        raise ConfigurationError(
            f"the store URL is {'empty' if url == '' else type_name}; expected a string such as "
            f"{BLOB.schemes['https'].form}, or a mapping with backendType; "
            f"{question}?{did_you_mean(url)}"
        )
    scheme, colon, rest = url.partition(":")
    added = _entry_points(group)
    if colon and (entry := _entry_of(added, scheme.lower()) or _entry_of(added, scheme_of(url))):
        with missing_driver_of(url):
            factory = entry.load()
        return factory(url, credential=credential, **settings)
    hint = did_you_mean(url)
    is_factory = all(part.isidentifier() for path in (scheme, rest) for part in path.split("."))
    if is_factory and not hint:
        factory = _factory(scheme, rest, quoted(url), known(added.names, scheme))
        return _called(url, factory, credential, settings)
    expected = known(added.names, scheme)
    end = "" if hint.endswith("?") else "."
    raise ConfigurationError(
        f"{quoted(shown(url))} names no store"
        + (f"{hint}{end} E{expected[1:]}" if hint else f"; {expected}")
    )


def _entry_points(group: str) -> "EntryPoints":
    """Return the entry points of a group, read again if a folder of the import path has changed.

    To read those of a hundred distributions takes milliseconds, and a test opens two stores.
    """
    return _read_entry_points(group, tuple((path, _modified(path)) for path in sys.path))


@lru_cache(maxsize=2)
def _read_entry_points(group: str, path: tuple[tuple[str, int], ...]) -> "EntryPoints":
    # The import takes a fifth of this package's import time, and only a URL needs it.
    from importlib.metadata import entry_points

    return entry_points(group=group)


def _modified(folder: str) -> int:
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0


def _entry_of(added: "EntryPoints", scheme: str) -> "EntryPoint | None":
    """Return the entry point of a scheme, None if there is none.

    Raises:
        ConfigurationError: several packages have one, for different factories.
    """
    entries = {entry.value: entry for entry in added.select(name=scheme)}
    if len(entries) > 1:
        origins = " and ".join(
            f"{entry.dist.name} ({value})" if entry.dist else value
            for value, entry in sorted(entries.items())
        )
        raise ConfigurationError(
            f"several packages add the scheme {scheme}: {origins}; uninstall all but one, or pass "
            "package.module:factory"
        )
    return next(iter(entries.values()), None)


def configured(
    group: str, mapping: Mapping[str, Any], credential: Any, settings: dict[str, Any]
) -> Any:
    """Open the store that a mapping names."""
    # Its tables, and what they import, are a tenth of this package's own import time.
    from eventhub_checkpoints.stores.configuration import expected_types, read_configuration

    opening = read_configuration(mapping, credential, settings)
    for note in opening.notes:
        log.warning("%s", note)
    if path := opening.class_path:
        module, _, name = path.rpartition(".")
        expected = f"expected {expected_types(path)}"
        factory = _factory(module, name, f"backendType {quoted(path)}", expected)
        store = _called(path, factory, opening.credential, opening.settings)
    else:
        store = opened(group, opening.url, opening.credential, opening.settings)
    if opening.creates:
        if not hasattr(store, "creates"):
            raise ConfigurationError(
                f"create is true, but {shown(mapping)} cannot create anything; leave create out"
            )
        store.creates = True
    return store


def _factory(module: str, name: str, what: str, expected: str) -> Callable[..., Any]:
    try:
        factory = attrgetter(name)(importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"{what} names no store and cannot be imported ({message_of(error)}); {expected}"
        ) from error
    if not callable(factory):
        raise ConfigurationError(
            f"{module}:{name} is not callable; expected a factory of a checkpoint store"
        )
    return cast("Callable[..., Any]", factory)


def _called(
    url: str, factory: Callable[..., Any], credential: Any, settings: dict[str, Any]
) -> Any:
    keywords = ({} if credential is None else {"credential": credential}) | settings
    try:
        return factory(**keywords)
    except TypeError as error:
        # Re-raise a TypeError that was raised inside the factory.
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            raise
        arguments = f"with {', '.join(keywords)}" if keywords else "without arguments"
        raise ConfigurationError(
            f"{shown(url)} could not be called {arguments}: {message_of(error)}"
        ) from error


def is_async_store(store: Any, url: str | Mapping[str, Any]) -> bool:
    """Return whether a store is for `azure.eventhub.aio`.

    Raises:
        ConfigurationError: it is not a store; the message names what the URL returned.
    """
    methods = [getattr(store, name, None) for name in METHODS]
    if isinstance(store, type) or not all(callable(method) for method in methods):
        if iscoroutine(store):
            store.close()  # avoids the warning that it was never awaited
        raise ConfigurationError(
            f"{shown(url)} returned {type(store).__name__}; expected a checkpoint store"
        )
    return iscoroutinefunction(store.list_ownership)


def known(names: Collection[str], scheme: str) -> str:
    """Return the known beginnings of a URL, nearest match first."""
    # Of a database without a store, the nearest name is that of another database.
    meant = "" if scheme_of(f"{scheme}:") in UNSUPPORTED else scheme
    # A driver may follow a scheme; the scheme alone is what is usually meant.
    plain = [name for name in sorted(names) if scheme_of(f"{name}:") not in {*names} - {name}]
    schemes = ", ".join(f"{name}:" for name in nearest_first(meant, plain))
    return f"expected one of {schemes}, or package.module:factory"


def shown(url: str | Mapping[str, Any]) -> str:
    """Return a URL without query and user, which may hold a secret; of a mapping, the store type.

    Of the query, the `prefix` of a container's names is kept.

    If a connection string or key was passed instead, it is cut off before the secret.
    """
    if isinstance(url, Mapping):
        return str(url.get("backendType"))
    start = re.split("[?;=]", url, maxsplit=1)[0]
    scheme, slashes, rest = start.partition("://")
    # Without it, the URL of a container would be that of other groups.
    prefix = PREFIX.search(url) if scheme in BLOB.schemes else None
    kept = f"?{prefix[1]}" if prefix and not holds_secret(prefix[1]) else ""
    if not slashes and "@" not in url and holds_secret(url):
        return quoted(url, sys.maxsize)[1:-1]
    if url.count("@") > rest.count("@"):
        # Ambiguous: an `@` in the query, or a password that contains `?`, `;` or `=`.
        return f"{url.partition(':')[0]}:..."
    return f"{scheme}{slashes}{rest.rpartition('@')[2]}{kept}" if slashes else start
