"""Settings that all workers share."""

from collections.abc import Mapping
from typing import Any

EXPIRY_SECONDS = 1.5
CLIENT: Mapping[str, Any] = {
    "load_balancing_interval": 0.3,
    "partition_ownership_expiration_interval": EXPIRY_SECONDS,
    "socket_timeout": 0.02,
}
"""A worker is replaced soon after it was killed."""
DRAIN_SECONDS = 10.0
TURN_SECONDS = 0.2
WRITE_SECONDS = 2.0
THREADS = 8
STORE: Mapping[str, Any] = {
    "operation_timeout": 3.0,
    "write_timeout": WRITE_SECONDS,
    "keep_unconfirmed": 1.0,
}
"""Below the expiry, and short enough for a round to see what happens after a time-out."""

OFFICIAL_STORE: Mapping[str, Any] = {
    "connection_timeout": 3.0,
    "read_timeout": 3.0,
    "initial_backoff": 1,
    "increment_base": 1,
    "random_jitter_range": 1,
}
"""Seconds. By default the official Blob store waits a minute for a silent server, and pauses for a
minute or more between its retries: longer than a worker has to end."""
