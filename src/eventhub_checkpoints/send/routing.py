"""Partition of a key, as the service and the official clients compute it.

Events of one key are put into the batches of its partition, together with those of other keys, as
the buffered producers of the official clients do. A batch for each key would often hold one event.

Source: Bob Jenkins, lookup3.c, `hashlittle2`, public domain; Azure.Messaging.EventHubs,
`PartitionResolver.cs`, which is a port of the service's code. azure-eventhub 5.15.1,
`_buffered_producer/_partition_resolver.py`, has the same hash, but another remainder of negative
numbers.
"""

import struct
from collections.abc import Sequence

BITS = 0xFFFF_FFFF
SEED = 0xDEAD_BEEF
BLOCK = struct.Struct("<3I")


def partition_of(key: str, partition_ids: Sequence[str]) -> str:
    """Return the partition to which the service assigns a key.

    Args:
        key: not empty.
        partition_ids: all of the hub, in numeric order.
    """
    first, second = lookup3(key.encode())
    unsigned = (first ^ second) & 0xFFFF
    number = unsigned - 0x1_0000 if unsigned & 0x8000 else unsigned
    # Unlike in Python, the remainder of a negative number is that of its absolute value in .NET.
    return partition_ids[abs(number) % len(partition_ids)]


def lookup3(data: bytes) -> tuple[int, int]:
    """Return the two 32-bit hashes of some bytes, both seeds 0."""
    a = b = c = (SEED + len(data)) & BITS
    at = 0
    while len(data) - at > BLOCK.size:
        x, y, z = BLOCK.unpack_from(data, at)
        a, b, c = mix((a + x) & BITS, (b + y) & BITS, (c + z) & BITS)
        at += BLOCK.size
    if at == len(data):
        return c, b
    x, y, z = BLOCK.unpack(data[at:].ljust(BLOCK.size, b"\0"))
    a, b, c = final((a + x) & BITS, (b + y) & BITS, (c + z) & BITS)
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
