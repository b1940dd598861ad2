"""What the hashes of a consumer group hold."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from eventhub_checkpoints.records import Checkpoint, Ownership, Scope
from eventhub_checkpoints.stores.hook_results import Listing
from eventhub_checkpoints.stores.record_format import Fields, checkpoint_of, field, is_row, owner_of
from eventhub_checkpoints.stores.redis.protocol import seconds

EPOCH_SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")


class Value(NamedTuple):
    """A value of a hash: its fields, None where it is no object, and what it goes by."""

    fields: Fields | None
    etag: str


def value_of(raw: bytes, name: str) -> Value:
    """Read a value; `name` is `etag` or `version`.

    One that the scripts might read in another way goes by its SHA-1, which they always accept.
    """
    try:
        found = json.loads(raw.decode())
        if b"\\u" in raw:
            json.dumps(found, ensure_ascii=False).encode()  # refuses half of a surrogate pair
    except (ValueError, RecursionError):
        return Value(None, digest(raw))
    if not isinstance(found, dict) or not all(map(is_plain, found.values())):
        return Value(None, digest(raw))
    fields = {key: None if one is None else str(one) for key, one in found.items()}
    etag = found.get(name)
    return Value(fields, etag if isinstance(etag, str) and etag else digest(raw))


def digest(raw: bytes) -> str:
    """What a value goes by that has no etag or version of its own."""
    return hashlib.sha1(raw, usedforsecurity=False).hexdigest()


def is_plain(value: Any) -> bool:
    """Whether it is a text, or stands for one without a doubt."""
    return value is None or (isinstance(value, str | int) and not isinstance(value, bool))


def ownership_row(scope: Scope, partition_id: str, value: Value) -> Ownership:
    """The ownership that a value holds; what cannot be read is released, so that it blocks none."""
    fields = value.fields or {}
    modified = field(fields, "modified")
    changed = float(modified) if EPOCH_SECONDS.fullmatch(modified) else 0.0
    return Ownership(scope, partition_id, owner_of(fields), value.etag, changed)


def checkpoint_row(scope: Scope, partition_id: str, value: Value) -> Checkpoint:
    """The checkpoint that a value holds, without a position where it holds none."""
    return checkpoint_of(scope, partition_id, value.fields or {}, value.etag)


def stored_ownership(scope: Scope, partition_id: str, raw: bytes) -> Ownership:
    """The ownership that stood in the way of a claim."""
    return ownership_row(scope, partition_id, value_of(raw, "etag"))


def stored_checkpoint(scope: Scope, partition_id: str, raw: bytes) -> Checkpoint:
    """The checkpoint that stood in the way of a write."""
    return checkpoint_row(scope, partition_id, value_of(raw, "version"))


def ownerships(scope: Scope, reply: Sequence[Any]) -> Listing[Ownership]:
    """What `LIST` answered for the ownerships of a scope."""
    rows: list[Ownership] = []
    skipped: list[str] = []
    for partition_id, value in values_of(reply, "etag"):
        if value.fields is None:
            skipped.append(f"{what('ownership', scope, partition_id)} cannot be read: it is free")
        elif not is_row(partition_id, value.fields):
            skipped.append(f"{what('ownership', scope, partition_id)} was left out: it is none")
            continue
        rows.append(ownership_row(scope, partition_id, value))
    return Listing(rows, seconds(reply[0]), skipped)


def checkpoints(scope: Scope, reply: Sequence[Any]) -> Listing[Checkpoint]:
    """What `LIST` answered for the checkpoints of a scope."""
    rows: list[Checkpoint] = []
    skipped: list[str] = []
    for partition_id, value in values_of(reply, "version"):
        row = checkpoint_row(scope, partition_id, value)
        if row.is_readable and is_row(partition_id, value.fields or {}):
            rows.append(row)
        else:
            skipped.append(
                f"{what('checkpoint', scope, partition_id)} was left out: it tells no position"
            )
    return Listing(rows, seconds(reply[0]), skipped)


def values_of(reply: Sequence[Any], name: str) -> Iterator[tuple[str, Value]]:
    """Partition ids and values, as `HGETALL` gives them in turn."""
    flat = iter(reply[1])
    for key, raw in zip(flat, flat, strict=True):
        yield key.decode(errors="backslashreplace"), value_of(raw, name)


def what(kind: str, scope: Scope, partition_id: str) -> str:
    """The row's name in a sentence."""
    return f"{kind} {partition_id!r} of {scope}"
