"""Process of a worker: `python -m chaos.worker ORDERS`."""

import logging
import sys
import time
from pathlib import Path

from chaos._async import worker as aio_worker
from chaos._sync import worker as sync_worker
from chaos.diary import Diary
from chaos.journal import Journal
from chaos.orders import orders_of


def shift_clock(seconds: float) -> None:
    """Have this process believe that it is later; libfaketime breaks Python's timed waits."""
    real = time.time
    time.time = lambda: real() + seconds


def main() -> None:
    """Process until SIGTERM, or until it is killed."""
    orders = orders_of(sys.argv[1])
    shift_clock(orders.clock)
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s")
    diary = Diary(Journal(Path(orders.journal), orders.name))
    if orders.variant == "aio":
        aio_worker.Worker(orders, diary).run()
    else:
        sync_worker.Worker(orders, diary).run()


if __name__ == "__main__":
    main()
