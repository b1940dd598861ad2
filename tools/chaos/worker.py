"""Process of a worker."""

import faulthandler
import logging
import signal
import time
from pathlib import Path

from chaos._async import worker as aio_worker
from chaos._sync import worker as sync_worker
from chaos.diary import Diary
from chaos.journal import Journal
from chaos.orders import orders_of

SHOW_STACKS = signal.SIGUSR1
"""Has a worker write the stacks of its threads to its log, and of its tasks."""


def shift_clock(seconds: float) -> None:
    """Have this process believe that it is later; libfaketime breaks Python's timed waits."""
    real = time.time
    time.time = lambda: real() + seconds


def run(text: str) -> None:
    """Process until SIGTERM, or until it is killed.

    Args:
        text: the worker's orders, from `Orders.to_json`.
    """
    orders = orders_of(text)
    is_aio = orders.variant == "aio"
    if is_aio:
        signal.signal(SHOW_STACKS, aio_worker.show_tasks)
    faulthandler.register(SHOW_STACKS, all_threads=True, chain=is_aio)
    shift_clock(orders.clock)
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s")
    diary = Diary(Journal(Path(orders.journal), orders.name))
    if is_aio:
        aio_worker.Worker(orders, diary).run()
    else:
        sync_worker.Worker(orders, diary).run()
