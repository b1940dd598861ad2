"""Partition keys: how long a key may be, and which partition the service computes for it.

Source: Bob Jenkins, lookup3.c, `hashlittle2`, public domain; for `service`
Azure.Messaging.EventHubs, `PartitionResolver.cs`, which is a port of the service's code,
azure-messaging-eventhubs (Java), `PartitionResolver.java`, and @azure/event-hubs (JavaScript),
`partitionKeyToIdMapper.ts`; for `python` azure-eventhub 5.15.1,
`_buffered_producer/_partition_resolver.py`.
"""

import struct
from collections.abc import Sequence
from typing import Literal

Partitioner = Literal["service", "python"]
"""Whose rule assigns keys: that of the service, and of the official .NET, Java and JavaScript
clients; or that of azure-eventhub's producer with `buffered_mode`."""

BITS = 0xFFFF_FFFF
SEED = 0xDEAD_BEEF
BLOCK = 12
"""Bytes, or characters, that are mixed at a time: three words."""

LONGEST_KEY = 128
"""Characters, of UTF-16. Source: azure-messaging-eventhubs, `EventHubProducerAsyncClient.java`,
`MAX_PARTITION_KEY_LENGTH`."""


def excessive_length(key: str) -> int | None:
    """Return the length of a key that is too long for the service; None for any other key."""
    if len(key) <= LONGEST_KEY // 2:
        return None
    length = len(key.encode("utf-16-le", "surrogatepass")) // 2
    return length if length > LONGEST_KEY else None


def partition_of(
    key: str, partition_ids: Sequence[str], partitioner: Partitioner = "service"
) -> str:
    """Return the partition to which a rule assigns a key.

    Args:
        key: not empty.
        partition_ids: all of the hub, in numeric order.
        partitioner: whose rule.
    """
    if partitioner == "service":
        data = key.encode()
        # Of a negative number, the remainder in .NET, Java and JavaScript has the absolute value
        # of that of its absolute value.
        hashed = abs(hash_code(len(data), words_of_bytes(data)))
    else:
        # Python's remainder of a negative number is another one, and that client hashes characters
        # instead of bytes.
        hashed = hash_code(len(key), words_of_characters(key))
    return partition_ids[hashed % len(partition_ids)]


def words_of_bytes(data: bytes) -> Sequence[int]:
    """Return bytes as words of 32 bits, padded with zeros to whole blocks of three words."""
    size = -(-len(data) // BLOCK) * BLOCK
    return struct.unpack(f"<{size // 4}I", data.ljust(size, b"\0"))


def words_of_characters(text: str) -> Sequence[int]:
    """Return the same for characters, of which those above 255 extend beyond their own byte."""
    size = -(-len(text) // BLOCK) * BLOCK
    points = [*map(ord, text.ljust(size, "\0"))]
    return [
        sum(point << 8 * index for index, point in enumerate(points[at : at + 4])) & BITS
        for at in range(0, size, 4)
    ]


def hash_code(length: int, words: Sequence[int]) -> int:
    """Return the hash of a key of a length, as a signed number of 16 bits."""
    first, second = lookup3(length, words)
    unsigned = (first ^ second) & 0xFFFF
    return unsigned - 0x1_0000 if unsigned & 0x8000 else unsigned


def lookup3(length: int, words: Sequence[int]) -> tuple[int, int]:
    """Return the two 32-bit hashes of whole blocks of three words, both seeds 0."""
    a = b = c = (SEED + length) & BITS
    last = len(words) - 3
    for at in range(0, last + 1, 3):
        x, y, z = words[at : at + 3]
        scramble = final if at == last else mix
        a, b, c = scramble((a + x) & BITS, (b + y) & BITS, (c + z) & BITS)
    return c, b


def rotated(value: int, bits: int) -> int:
    """Rotate a 32-bit value to the left."""
    return ((value << bits) | (value >> (32 - bits))) & BITS


def mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    """Mix one block of 12 bytes into the state."""
    for bits in (4, 6, 8, 16, 19, 4):
        a = ((a - c) & BITS) ^ rotated(c, bits)
        c = (c + b) & BITS
        a, b, c = b, c, a
    return a, b, c


def final(a: int, b: int, c: int) -> tuple[int, int, int]:
    """Mix the state after the last block."""
    for bits in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - rotated(b, bits)) & BITS
        a, b, c = b, c, a
    a, b, c = c, a, b
    return a, b, c
