"""Which query of a session is followed, and of which runs Spark has more to tell."""

import threading
from collections.abc import Iterable

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints.errors import ConfigurationError


class Runs:
    """The runs of a session's queries, as its listener tells of them.

    One query at a time is followed: of two that read the same hub, one may be far ahead, and its
    position would tell consumers to skip what the other has not processed. A query that is over
    makes room for the next.

    Args:
        query_name: name or id of the one query to follow; None: the only one that reads the hub.
    """

    def __init__(self, query_name: str | None = None) -> None:
        self._wanted = query_name
        self._seen: dict[str, str | None] = {}
        self._running: set[str] = set()
        self._over: set[str] = set()
        self._followed: tuple[str, str, int] | None = None
        self._changed = threading.Condition()

    def started(self, query_id: str, run_id: str, name: str | None) -> None:
        """A query runs; Spark will tell of its end."""
        with self._changed:
            self._seen[query_id] = name
            if run_id not in self._over:
                self._running.add(run_id)

    def ended(self, run_id: str) -> None:
        """Spark has told everything about a run."""
        with self._changed:
            self._over.add(run_id)
            self._running.discard(run_id)
            self._changed.notify_all()

    def is_wanted(self, query_id: str, name: str | None) -> bool:
        """Whether this is the query that was named, or none was."""
        return self._wanted is None or self._wanted in (query_id, name)

    def follow(self, query_id: str, run_id: str, batch_id: int) -> bool:
        """Whether this is the newest batch that was told of the query.

        Raises:
            ConfigurationError: another query reads the hub too, and is not over.
        """
        with self._changed:
            if self._followed is not None:
                other, run, batch = self._followed
                if run == run_id and batch > batch_id:
                    return False
                if other != query_id and run in self._running:
                    raise ConfigurationError(
                        f"two queries read the hub, {self._told(other)} and "
                        f"{self._told(query_id)}; say which one's progress is published, with "
                        "query_name= (a name or an id)"
                    )
            self._followed = (query_id, run_id, batch_id)
            return True

    def check_named(self) -> None:
        """Look whether the named query was there: a misspelt name would publish nothing.

        Raises:
            ConfigurationError: queries have run, and none was the one that was named.
        """
        with self._changed:
            if self._seen and not any(self.is_wanted(*one) for one in self._seen.items()):
                raise ConfigurationError(
                    f"no query is named {quoted(self._wanted)}; there was "
                    f"{', '.join(map(self._told, self._seen))}"
                )

    def wait_for_end(self, running: Iterable[str], timeout: float) -> bool:
        """Whether, after at most `timeout` (s), Spark has told the end of all other runs.

        It does that from another thread, some time after the query has ended.
        """
        with self._changed:
            awaited = self._running - set(running)
            return self._changed.wait_for(lambda: not awaited & self._running, timeout)

    def _told(self, query_id: str) -> str:
        return self._seen.get(query_id) or query_id
