"""What is said to Redis, and what its answers mean: keys, scripts and words of refusal.

Source: `docs/redis.md`, the persistent format.
"""

import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Literal, NamedTuple

from eventhub_checkpoints.errors import (
    StoreAccessError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.records import Proposal, Scope

Kind = Literal["ownership", "checkpoint"]

COMMANDS = "+evalsha +eval +time +hget +hset +hgetall +info +client|setname"
"""What a consumer needs."""
OPERATOR_COMMANDS = "+scan +hlen +hdel +del"
"""What lists of groups and deletes need besides."""
EVICTS = "allkeys-"
"""Policies that may evict keys without a time to live; ours never have one. The `volatile-` ones
and `noeviction` leave them alone.

Source: Redis documentation, "Key eviction"."""


class Script(NamedTuple):
    """A script, what it does, and the digest by which a server that has seen it knows it."""

    text: str
    does: str
    digest: str


def script(name: str, does: str) -> Script:
    """One of the `.lua` files beside this module."""
    text = files("eventhub_checkpoints._wire").joinpath(f"redis_{name}.lua").read_text("utf-8")
    return Script(text, does, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


CLAIM = script("claim", "claiming")
WRITE_CHECKPOINT = script("checkpoint", "writing a checkpoint")
LIST = script("list", "listing")
DELETE = script("delete", "deleting")


def hash_key(namespace: str, scope: Scope, kind: Kind) -> str:
    """The key of a group's hash; the braces keep both hashes in one slot of a cluster."""
    return f"{{{namespace}:{scope.folded}}}:{kind}"


def scope_of(namespace: str, key: str) -> Scope | None:
    """The scope of a key; None where it is no key of ours."""
    start = f"{{{namespace}:"
    names = re.fullmatch(r"([^/]+)/([^/]+)/([^/]+)\}:(ownership|checkpoint)", key[len(start) :])
    return Scope(*names.groups()[:3]) if names and key.startswith(start) else None


def all_keys(namespace: str) -> str:
    """The pattern of every key of a namespace, for `SCAN` and for the rights of a user."""
    literal = re.sub(r"([*?^\[\]\\-])", r"\\\1", namespace)
    return f"{{{literal}:*"


def claim_arguments(proposals: Sequence[Proposal]) -> list[str]:
    """The arguments of `CLAIM`, for proposals of one scope."""
    return [
        text
        for one in proposals
        for text in (one.partition_id, one.etag or "", one.new_etag, one.owner_id)
    ]


def seconds(time: Sequence[bytes]) -> float:
    """What `TIME` answers, in seconds since the epoch."""
    whole, micros = time
    return int(whole) + int(micros) / 1e6


REFUSALS = {
    "NOAUTH": "it wants a password: put it into the URL, or pass credential=",
    "WRONGPASS": "user name and password do not fit, or the user is disabled",
    # Not the server's word, but that of OpenSSL.
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
    "BUSY": "it is busy with somebody's script",
    # Not final: it ends by itself when the disk has room, and nobody else can write meanwhile.
    "MISCONF": "it cannot save its data to disk and refuses writes: look at its disk and its log",
}
FINAL = {
    "OOM": "it has no memory left (maxmemory): nothing was stored; give it more, or remove keys",
    "WRONGTYPE": "this key holds no hash, so somebody else uses it: choose another namespace",
}
CODE = re.compile(r"(?<!\w)-?(" + "|".join([*REFUSALS, *PASSING, *FINAL, "NOPERM"]) + r")\b")
NO_DATABASE = re.compile("DB index|SELECT is not allowed in cluster mode")
"""How a server answers `SELECT`, which is sent at each connect to a database other than 0."""
NO_RIGHT = re.compile(r"user executing the script can't|has no permissions")
"""How Redis 6 and 7 refuse a command inside of a script, without a code."""
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
"""The driver cuts the code off where it has a class for it. By name: not every release has all."""


def code_of(error: Exception) -> str:
    """The code of an error that a server answered with; `""` if it is none that is known here.

    Redis 6 puts it into the middle of the sentence where a command inside of a script failed.
    """
    said = str(error)
    if "Authentication required" in said:
        return "NOAUTH"
    for kind in type(error).__mro__:
        if kind.__name__ in CODES_OF_CLASSES:
            return CODES_OF_CLASSES[kind.__name__]
    if found := CODE.search(said):
        return found[1]
    if NO_DATABASE.search(said):
        return "NODATABASE"
    return "NOPERM" if NO_RIGHT.search(said) else ""


def failure(code: str, said: str, what: str, namespace: str) -> StoreError:
    """The error for a refusal.

    Args:
        code: see `code_of`.
        said: the server's own words.
        what: what was attempted, on which server and key.
        namespace: what the keys of the store begin with.
    """
    if code == "NOPERM":
        needed = (
            f"{COMMANDS} (to list groups and to delete, also {OPERATOR_COMMANDS}; for a database "
            "other than 0, +select)"
        )
        return StoreAccessError(
            f"{what}: the user lacks a right ({said}); it needs {needed}, on the keys "
            f"~{all_keys(namespace)}"
        )
    if code == "NODATABASE":
        return StoreNotReadyError(
            f"{what}: the server has no database of this number ({said}): it has as many as its "
            "setting databases says, by default 0 to 15, and a cluster has only 0; put another "
            "number behind the host, as in redis://HOST/0"
        )
    if code in REFUSALS:
        return StoreAccessError(f"{what}: {REFUSALS[code]} ({said})")
    if code in PASSING:
        return StoreUnavailableError(f"{what}: {PASSING[code]} ({said})")
    if code in FINAL:
        return StoreError(f"{what}: {FINAL[code]} ({said})")
    return StoreError(f"{what}: the server answered {said}")
