"""Base class of clusters: several servers of one kind, one of which dies and is replaced."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from backends.base import Backend, OwnServer, Place

Look = Callable[[], None]


class ClusterPlace(Place):
    """Place on a cluster, whose `url` reaches the current primary.

    Reading and writing past the store is done on the node that is the primary now.
    """

    @abstractmethod
    def url_of(self, node: OwnServer) -> str:
        """Return the argument of `open_store` for reading one node, whatever its role."""


class Cluster(Backend):
    """Servers as child processes, each with its own data.

    Attributes:
        nodes: all servers.
        primary: the one that takes writes, or the first that clients turn to.
    """

    stops: ClassVar[bool] = True
    """Whether no node takes writes between the death of the primary and `take_over`."""
    forgets: ClassVar[bool] = False
    """Whether a fail-over may cost writes that were confirmed."""
    nodes: Sequence[OwnServer]
    primary: OwnServer

    @property
    def survivors(self) -> list[OwnServer]:
        """Return the nodes besides the primary."""
        return [node for node in self.nodes if node is not self.primary]

    @abstractmethod
    def settle(self) -> None:
        """Wait until the survivors have applied what the killed primary has sent them."""

    @abstractmethod
    def take_over(self) -> None:
        """Replace the killed primary, and return when its successor takes writes."""

    @abstractmethod
    def rejoin(self, node: OwnServer) -> None:
        """Start a killed node again, and return when it has what the primary has."""

    def fail_over(self, look: Look = lambda: None, *, is_orderly: bool = False) -> None:
        """Kill the primary, or shut it down in order, replace it, and let it rejoin.

        Args:
            look: called between the death of the primary and the choice of its successor.
        """
        dead = self.primary
        dead.shut_down() if is_orderly else dead.kill()
        self.settle()
        look()
        self.take_over()
        self.rejoin(dead)

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()

    @abstractmethod
    def place(self) -> Any:
        """Return a new place, not created yet."""
