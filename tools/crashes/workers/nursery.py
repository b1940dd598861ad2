"""Process that forks workers, so that none of them has to import everything: `Nursery`.

`python -m crashes.workers.nursery` answers each line of its input, a request in JSON, with one
line: `{"orders": ORDERS, "log": PATH}` with the id of a new process, and `{"poll": ID}` with its
exit status, or null while it runs. When its input ends, because its parent has ended in whatever
way, it kills the workers that are left.
"""

import asyncio
import faulthandler
import gc
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from crashes.drivers import SOURCES, TOOLS
from crashes.workers._async.client import show_tasks
from crashes.workers._async.worker import Worker as AioWorker
from crashes.workers._sync.worker import Worker
from crashes.workers.diary import Diary
from crashes.workers.journal import Journal
from crashes.workers.orders import orders_of

DRIVERS = ("aiohttp", "aiomysql", "aiosqlite", "cassandra.cluster", "psycopg", "pymysql", "redis")
STORES = ("blob", "table", "sql", "redis", "cassandra")
SHOW_STACKS = signal.SIGUSR1
"""Has a worker write the stacks of its threads to its log, and of its tasks."""


class Nursery:
    """Process that forks workers; thread-safe. Its end kills those that are left."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "crashes.workers.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([SOURCES, TOOLS])},
            text=True,
            start_new_session=True,
        )

    def start(self, orders: str, log: Path) -> int:
        """Start a worker that writes its output to a file; return its process id."""
        return int(self._ask(orders=orders, log=str(log)))

    def poll(self, pid: int) -> int | None:
        """Return the exit status of a worker, negative for a signal; None while it runs.

        The status can be asked for until it was returned once.
        """
        status: int | None = self._ask(poll=pid)
        return status

    def _ask(self, **request: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._guard:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


def serve() -> str | None:
    """Answer requests; return None at their end, and in each new process its orders."""
    living: set[int] = set()
    for line in sys.stdin:
        request = json.loads(line)
        if "poll" in request:
            pid, status = os.waitpid(request["poll"], os.WNOHANG)
            living.discard(pid)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if not answer:
                write_to(request["log"])
                orders: str = request["orders"]
                return orders
            living.add(answer)
        print(json.dumps(answer), flush=True)
    for pid in living:
        os.kill(pid, signal.SIGKILL)
    return None


def write_to(log: str) -> None:
    """Have this process write its output to a file, and read nothing."""
    with Path(os.devnull).open() as nothing, Path(log).open("wb") as output:
        os.dup2(nothing.fileno(), 0)
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)


def shift_clock(seconds: float) -> None:
    """Have this process believe that it is later; libfaketime breaks Python's timed waits."""
    real = time.time
    time.time = lambda: real() + seconds


def work(text: str) -> None:
    """Process until SIGTERM, or until it is killed.

    Args:
        text: the worker's orders, from `Orders.to_json`.
    """
    orders = orders_of(text)
    is_aio = orders.variant == "aio"
    if is_aio:
        signal.signal(SHOW_STACKS, show_tasks)
    faulthandler.register(SHOW_STACKS, all_threads=True, chain=is_aio)
    shift_clock(orders.clock)
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s")
    diary = Diary(Journal(Path(orders.journal), orders.name))
    if is_aio:
        asyncio.run(AioWorker(orders, diary).run())
    else:
        Worker(orders, diary).run()


def main() -> None:
    """Import everything, and serve."""
    for name in (*DRIVERS, *(f"eventhub_checkpoints.{one}" for one in STORES)):
        import_module(name)
    gc.freeze()
    if orders := serve():
        work(orders)


if __name__ == "__main__":
    main()
