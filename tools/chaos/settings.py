"""Settings that all workers share."""

import signal
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

OFFICIAL: Mapping[str, Any] = {
    "connection_timeout": 3.0,
    "read_timeout": 3.0,
    "initial_backoff": 1,
    "increment_base": 1,
    "random_jitter_range": 1,
}
"""Seconds for the requests of the official Blob store. By default it waits a minute for a server
that is silent, and a minute and a half between retries: longer than a worker has to end."""

SHOW_STACKS = signal.SIGUSR1
"""Has a worker write the stacks of its threads to its log, and of its tasks."""
