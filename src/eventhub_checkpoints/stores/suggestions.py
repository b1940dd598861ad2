"""What was probably meant by a URL that no store takes."""

import re
from collections.abc import Container
from pathlib import PurePath

from eventhub_checkpoints._shared.clouds import in_cloud_of, storage_host
from eventhub_checkpoints._shared.secrets import holds_secret
from eventhub_checkpoints.stores.backends import SCHEMES, UNSUPPORTED, scheme_of

ALIASES = {alias: scheme.form for scheme in SCHEMES.values() for alias in scheme.aliases}
NAMES = {name: scheme.form for name, scheme in SCHEMES.items()} | ALIASES
PORTS = {str(scheme.port): scheme.form for scheme in SCHEMES.values() if scheme.port}
JDBC = "jdbc:"
SQLITE = r"(?i)sqlite3:///(?P<path>.+)|(?:sqlite3?|file):/{0,2}(?P<file>/*[^/].*)"
PATH = r"(?i)(?=.*[^/\\.])(?:[^=;]*[/\\][^=;]*|[^=;:]+\.(?:db|sqlite3?))"
STORAGE = {"blob": "https", "table": "table"}
"""Schemes of the stores in a storage account, by the service that its host names."""
CONNECTION_STRING = (
    r"(?i)\b(?:(?P<account>AccountName|AccountKey|BlobEndpoint|TableEndpoint)=|Endpoint=sb:)"
)
STORAGE_ACCOUNT = (
    "; the connection string of a storage account goes to "
    "BlobCheckpointStore.from_connection_string or TableCheckpointStore.from_connection_string"
)
CUSTOM = "a custom store can be written for it: docs/how-to/custom-store.md"
EVENT_HUB = "; this is the connection string of an event hub, not the URL of a store"
HOST = r"[\w.-]+:(?P<port>\d+)(?:/\d*)?"


def did_you_mean(url: object, own: Container[str] | None = None) -> str:
    """Return the suggestion to append to a message about an unsupported URL; `""` if unclear.

    Args:
        url: the string or path that was passed; only a path without a secret is repeated.
        own: schemes of the store that was called; None for any store.
    """
    if isinstance(url, PurePath):
        meant: str | None = sqlite_url(str(url))
    elif isinstance(url, str):
        url = url.strip()
        if match := re.search(CONNECTION_STRING, url):
            return STORAGE_ACCOUNT if match["account"] else EVENT_HUB
        if title := UNSUPPORTED.get(scheme_of(without_jdbc(url))):
            return f"; there is no store for {title}, but {CUSTOM}"
        meant = meant_url(url, own)
    else:
        meant = None
    if meant is None:
        return ""
    is_own = own is None or scheme_of(meant) in own
    return f"; did you mean {meant}?" if is_own else f"; did you mean open_store with {meant}?"


def meant_url(url: str, own: Container[str] | None) -> str | None:
    """Return the store URL, with placeholders, that most resembles what was passed.

    A URL whose scheme the called store takes resembles none: its message shows the form already.
    """
    text = without_jdbc(url)
    whole, slashes, _ = text.partition("://")
    scheme = scheme_of(text)
    if slashes and (form := ALIASES.get(whole.lower(), ALIASES.get(scheme))):
        return form
    if ",password=" in url:
        return "rediss://:PASSWORD@HOST:6380/0"  # format of StackExchange.Redis and the portal
    if match := re.fullmatch(HOST, url):
        return PORTS.get(match["port"])
    if match := re.fullmatch(SQLITE, text):
        return sqlite_url(match["path"] or match["file"])
    for service, name in STORAGE.items():
        if match := re.fullmatch(rf"(?i)(?P<host>{storage_host(service)})(?:/.*)?", url):
            return in_cloud_of(match["host"], SCHEMES[name].form)
    if scheme in SCHEMES:
        is_spelled = text == url and whole.startswith(scheme)
        is_own = own is None or scheme in own
        return None if slashes and is_spelled and is_own else SCHEMES[scheme].form
    if form := NAMES.get(url.lower()):
        return form
    return sqlite_url(url) if not slashes and re.fullmatch(PATH, url) else None


def without_jdbc(url: str) -> str:
    """Return the URL that a URL for Java contains, or the URL itself."""
    return url[len(JDBC) :] if url.lower().startswith(JDBC) else url


def sqlite_url(path: str) -> str:
    """Return the SQLite URL of a file."""
    return "sqlite:///FILE" if holds_secret(path) or "@" in path else f"sqlite:///{path}"
