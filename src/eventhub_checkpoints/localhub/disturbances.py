"""Faults injected into a running hub from any thread."""

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
    """Faults of a running hub. Every method may be called from any thread."""

    @abstractmethod
    def _call(self, function: Callable[[Server], T]) -> T:
        """Run a function on the server's thread."""

    def drop_connections(self) -> int:
        """Drop all connections, as a broken network does; return how many there were."""
        return self._call(Server.drop_connections)

    def refuse_connections(self, refuse: bool = True) -> None:
        """Drop every new connection at once, until called with False."""

        def work(server: Server) -> None:
            server.faults.refusing = refuse

        self._call(work)

    def refuse_tokens(self, refuse: bool = True) -> None:
        """Refuse every token, as the service refuses a wrong key, until called with False."""

        def work(server: Server) -> None:
            server.faults.refusing_tokens = refuse

        self._call(work)

    def delay(self, seconds: float) -> None:
        """Delay everything sent from now on; 0 ends the delay.

        The order of frames and the throughput stay the same: this adds latency, not a limit.
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
            description: the description that the client shows.
        """
        check_text("condition", condition)
        error = Error(condition=condition, description=description)
        return self._call(
            lambda server: server.find(hub).detach_readers(error, partition_id, consumer_group)
        )

    def refuse_links(
        self, count: int, condition: str, description: str = "The link was refused on request."
    ) -> None:
        """Refuse the next `count` links that any client attaches; 0 ends it."""
        check_count("count", count, least=0)
        check_text("condition", condition)
        error = Error(condition=condition, description=description)

        def work(server: Server) -> None:
            server.faults.refusals.clear()
            server.faults.refusals.extend([error] * count)

        self._call(work)

    def refused_links(self) -> list[RefusedLink]:
        """Return the links refused by a fault or by the service's rules, oldest first.

        The aio client retries silently, so this is where a test can see a refusal.
        """
        return self._call(lambda server: list(server.faults.journal))

    def connections(self) -> int:
        """Return the number of open connections."""
        return self._call(lambda server: len(server.connections))
