"""Keys, scripts, error codes, and hashes as records."""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from eventhub_checkpoints._shared.error_messages import unmasked_message
from eventhub_checkpoints.errors import (
    StoreAccessError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores.hook_results import Listing
from eventhub_checkpoints.stores.record_format import Fields, checkpoint_of, field, is_row, owner_of

Kind = Literal["ownership", "checkpoint"]

COMMANDS = "+evalsha +eval +time +hget +hset +hgetall +info +client|setname"
"""Commands that a consumer needs."""
OPERATOR_COMMANDS = "+scan +hlen +hdel +del"
"""Additional commands for listing and deleting groups."""
AUDIENCE = "https://redis.azure.com"
"""Of tokens for Redis in Azure. No other is documented for the other clouds.

Source: Azure Managed Redis, "Use Microsoft Entra ID for cache authentication";
Microsoft.Azure.StackExchangeRedis, `AzureCacheOptions.Scope`, which has one default for all clouds.
"""
EVICTS = "allkeys-"
"""Policies that may evict keys without a TTL; the store's never have one. The `volatile-` policies
and `noeviction` do not evict them.

Source: Redis documentation, "Key eviction".
"""


class Script(NamedTuple):
    """A script, its operation, and the digest under which a server caches it."""

    text: str
    does: str
    digest: str


def script(name: str, does: str) -> Script:
    """Load one of the `.lua` files in this package."""
    text = files("eventhub_checkpoints.stores.redis").joinpath(f"{name}.lua").read_text("utf-8")
    return Script(text, does, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


CLAIM = script("claim", "claiming")
WRITE_CHECKPOINT = script("checkpoint", "writing a checkpoint")
LIST = script("list", "listing")
DELETE = script("delete", "deleting")


def hash_key(namespace: str, scope: Scope, kind: Kind) -> str:
    """Return the key of a group's hash; the braces keep both hashes in one cluster slot."""
    return f"{{{namespace}:{scope.folded}}}:{kind}"


def scope_of(namespace: str, key: str) -> Scope | None:
    """Return the scope of a key; None if the key is not one of the store's."""
    start = f"{{{namespace}:"
    names = re.fullmatch(r"([^/]+)/([^/]+)/([^/]+)\}:(ownership|checkpoint)", key[len(start) :])
    return Scope._make(names.groups()[:3]) if names and key.startswith(start) else None


def all_keys(namespace: str) -> str:
    """Return the pattern of all keys of a namespace, for `SCAN` and ACL rules."""
    literal = re.sub(r"([*?^\[\]\\-])", r"\\\1", namespace)
    return f"{{{literal}:*"


def claim_arguments(proposals: Sequence[Proposal]) -> list[str]:
    """Return the arguments of `CLAIM`, for proposals of one scope."""
    return [
        text
        for each in proposals
        for text in (each.partition_id, each.etag or "", each.new_etag, each.owner_id)
    ]


def seconds(time: Sequence[bytes]) -> float:
    """Convert the reply of `TIME` to seconds since the epoch."""
    whole, micros = time
    return int(whole) + int(micros) / 1e6


REFUSALS = {
    "NOAUTH": "it wants a password: put it into the URL, or pass credential=",
    "WRONGPASS": "user name and password do not fit, or the user is disabled",
    # Not a server's error code, but OpenSSL's.
    "CERTIFICATE_VERIFY_FAILED": "its certificate is not trusted: name the file of its authority "
    "in the URL, as in ?ssl_ca_certs=FILE",
}
PASSING = {
    "LOADING": "it is still loading its data",
    "CLUSTERDOWN": "a part of the cluster is down",
    "TRYAGAIN": "the group's slot is being moved to another node",
    "MASTERDOWN": "it is a replica that has lost its primary",
    "READONLY": "it is a replica; a failover may be under way, or the URL names the wrong server",
    "NOREPLICAS": "it has fewer replicas than min-replicas-to-write asks for",
    "BUSY": "it is busy running a script",
    # Not final: it ends when the disk has space again, and no other client can write until then.
    "MISCONF": "it cannot save its data to disk and refuses writes: look at its disk and its log",
}
FINAL = {
    "OOM": "it has no memory left (maxmemory): nothing was stored; give it more, or remove keys",
    "WRONGTYPE": "this key holds no hash, so another program uses it: choose another namespace",
}
CODE = re.compile(r"(?<!\w)-?(" + "|".join([*REFUSALS, *PASSING, *FINAL, "NOPERM"]) + r")\b")
NO_DATABASE = re.compile("DB index|SELECT is not allowed in cluster mode")
"""Errors of `SELECT`, which is sent at each connect to a database other than 0."""
NO_RIGHT = re.compile(r"user executing the script can't|has no permissions")
"""Messages with which Redis 6 and 7 refuse a command inside a script, without a code."""
CODES_OF_CLASSES = {
    "AuthenticationError": "WRONGPASS",
    "NoPermissionError": "NOPERM",
    "BusyLoadingError": "LOADING",
    "MasterDownError": "MASTERDOWN",
    "ClusterDownError": "CLUSTERDOWN",
    "TryAgainError": "TRYAGAIN",
    "ReadOnlyError": "READONLY",
    "OutOfMemoryError": "OOM",
}
"""The driver strips the code if it has a class for it. By name: not every release has all."""


def code_of(error: Exception) -> str:
    """Return the error code of a server's reply; `""` if it is not known here.

    Redis 6 puts it in the middle of the message if a command inside a script failed.
    """
    message = unmasked_message(error)
    if "Authentication required" in message:
        return "NOAUTH"
    for kind in type(error).__mro__:
        if kind.__name__ in CODES_OF_CLASSES:
            return CODES_OF_CLASSES[kind.__name__]
    if code := CODE.search(message):
        return code[1]
    if NO_DATABASE.search(message):
        return "NODATABASE"
    return "NOPERM" if NO_RIGHT.search(message) else ""


def failure(code: str, message: str, what: str, namespace: str) -> StoreError:
    """Return the error for a refused request.

    Args:
        code: see `code_of`.
        message: of the server.
        what: what was attempted, on which server and key.
        namespace: prefix of the store's keys.
    """
    if code == "NOPERM":
        needed = (
            f"{COMMANDS} (to list groups and to delete, also {OPERATOR_COMMANDS}; for a database "
            "other than 0, +select)"
        )
        return StoreAccessError(
            f"{what}: the user lacks a right ({message}); it needs {needed}, on the keys "
            f"~{all_keys(namespace)}"
        )
    if code == "NODATABASE":
        return StoreNotReadyError(
            f"{what}: the server has no database of this number ({message}): it has as many as its "
            "setting databases says, by default 0 to 15, and a cluster has only 0; put another "
            "number after the host, as in redis://HOST/0"
        )
    if code in REFUSALS:
        return StoreAccessError(f"{what}: {REFUSALS[code]} ({message})")
    if code in PASSING:
        return StoreUnavailableError(f"{what}: {PASSING[code]} ({message})")
    if code in FINAL:
        return StoreError(f"{what}: {FINAL[code]} ({message})")
    return StoreError(f"{what}: the server answered {message}")


JSON, JSON_SPACE = json.JSONDecoder(), " \t\n\r"
CONVERTIBLE = {str, int, type(None)}
"""Types of JSON values that are strings, or convert to one unambiguously."""
EPOCH_SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")


def value_of(raw: bytes, name: str) -> tuple[Fields | None, str]:
    """Return the fields of a value, None if it is not an object, and its etag or version.

    A value that the scripts might parse differently is identified by its SHA-1, which they always
    accept. `name` is `etag` or `version`.
    """
    try:
        text = raw.decode().strip(JSON_SPACE)
        value, end = JSON.raw_decode(text)  # `json.loads` takes twice as long
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()  # raises for a lone surrogate
    except (ValueError, RecursionError):
        return None, digest(raw)
    types = set(map(type, value.values())) if isinstance(value, dict) else {dict}
    if end < len(text) or not types <= CONVERTIBLE:
        return None, digest(raw)
    etag = value.get(name)
    if int in types:
        value = {key: None if each is None else str(each) for key, each in value.items()}
    return value, etag if isinstance(etag, str) and etag else digest(raw)


def digest(raw: bytes) -> str:
    """Return the SHA-1 that identifies a value without an etag or version."""
    return hashlib.sha1(raw, usedforsecurity=False).hexdigest()


def ownership_of(scope: Scope, partition_id: str, fields: Fields | None, etag: str) -> Ownership:
    """Return the ownership that a value holds; an unreadable one counts as released.

    It would block claims otherwise.
    """
    fields = fields or {}
    return Ownership(scope, partition_id, owner_of(fields), etag, modified_time(fields) or 0.0)


def modified_time(fields: Fields) -> float | None:
    """Return the time of a value in seconds since the epoch; None if it has no valid one."""
    modified = field(fields, "modified")
    return float(modified) if EPOCH_SECONDS.fullmatch(modified) else None


def stored_checkpoint(scope: Scope, partition_id: str, raw: bytes) -> Checkpoint:
    """Return the checkpoint that conflicted with a write, without a position if it has none."""
    fields, version = value_of(raw, "version")
    return checkpoint_of(scope, partition_id, fields or {}, version)


def ownerships(scope: Scope, reply: Sequence[Any]) -> Listing[Ownership]:
    """Parse the reply of `LIST` for the ownerships of a scope."""
    rows: list[Ownership] = []
    skipped: list[str] = []
    for partition_id, raw in entries(reply):
        fields, etag = value_of(raw, "etag")
        if fields is None:
            skipped.append(f"ownership {partition_id!r} of {scope} cannot be read: it is free")
        elif not is_row(partition_id, fields):
            name = f"ownership {partition_id!r} of {scope}"
            skipped.append(f"{name} was left out: it is not an ownership")
            continue
        rows.append(ownership_of(scope, partition_id, fields, etag))
    return Listing(rows, seconds(reply[0]), skipped)


def checkpoints(scope: Scope, reply: Sequence[Any]) -> Listing[Checkpoint]:
    """Parse the reply of `LIST` for the checkpoints of a scope."""
    rows: list[Checkpoint] = []
    skipped: list[str] = []
    for partition_id, raw in entries(reply):
        value, version = value_of(raw, "version")
        fields = value or {}
        row = checkpoint_of(scope, partition_id, fields, version, modified_time(fields))
        if row.is_readable and is_row(partition_id, fields):
            rows.append(row)
        else:
            name = f"checkpoint {partition_id!r} of {scope}"
            skipped.append(f"{name} was left out: it has no position")
    return Listing(rows, seconds(reply[0]), skipped)


def entries(reply: Sequence[Any]) -> Iterable[tuple[str, bytes]]:
    """Return partition ids and values from the flat reply of `HGETALL`."""
    keys, values = reply[1][::2], reply[1][1::2]
    ids = [key.decode(errors="backslashreplace") for key in keys]
    return zip(ids, values, strict=True)
