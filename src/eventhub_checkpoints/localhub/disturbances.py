"""The faults of a running hub, on request from any thread."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

from eventhub_checkpoints.amqp.performatives import Error
from eventhub_checkpoints.localhub.arguments import check_count, check_delay, check_text
from eventhub_checkpoints.localhub.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from eventhub_checkpoints.localhub.faults import RefusedLink

T = TypeVar("T")


class Disturbances(ABC):
    """Every method may be called from any thread while the hub runs."""

    @abstractmethod
    def _call(self, function: Callable[[Server], T]) -> T:
        """Run a function where the server runs."""

    def drop_connections(self) -> int:
        """Cut all connections off, as a broken network does; return how many there were."""
        return self._call(Server.drop_connections)

    def refuse_connections(self, refuse: bool = True) -> None:
        """Cut every new connection off at once, until called with False."""

        def work(server: Server) -> None:
            server.faults.refusing = refuse

        self._call(work)

    def refuse_tokens(self, refuse: bool = True) -> None:
        """Refuse every token, as the service refuses a wrong key, until called with False."""

        def work(server: Server) -> None:
            server.faults.refusing_tokens = refuse

        self._call(work)

    def delay(self, seconds: float) -> None:
        """Send everything later from now on; 0 ends it.

        The order of frames stays, and throughput too: it is a latency, not a limit.
        """
        check_delay(seconds)

        def work(server: Server) -> None:
            server.faults.delay = seconds

        self._call(work)

    def detach_receivers(
        self,
        hub: str,
        *,
        partition_id: str | None = None,
        consumer_group: str | None = None,
        condition: str = "amqp:link:detach-forced",
        description: str = "The link was detached on request.",
    ) -> int:
        """Detach receivers with a condition; return how many.

        Args:
            hub: the hub's name.
            partition_id: only its receivers; None means all.
            consumer_group: only its receivers; None means all.
            condition: for instance "amqp:link:stolen" or "com.microsoft:server-busy".
            description: the text that the client shows.
        """
        check_text("condition", condition)
        error = Error(condition=condition, description=description)
        return self._call(
            lambda server: server.find(hub).detach_readers(error, partition_id, consumer_group)
        )

    def refuse_links(
        self, count: int, condition: str, description: str = "The link was refused on request."
    ) -> None:
        """Refuse the next links that any client attaches, `count` of them; 0 ends it."""
        check_count("count", count, least=0)
        check_text("condition", condition)
        error = Error(condition=condition, description=description)

        def work(server: Server) -> None:
            server.faults.refusals.clear()
            server.faults.refusals.extend([error] * count)

        self._call(work)

    def refused_links(self) -> list[RefusedLink]:
        """Name the links that were refused, by a fault or by the service's rules, oldest first.

        The aio client tries again without a word, so this is where a test sees it.
        """
        return self._call(lambda server: list(server.faults.journal))

    def connections(self) -> int:
        """Count the open connections."""
        return self._call(lambda server: len(server.connections))
