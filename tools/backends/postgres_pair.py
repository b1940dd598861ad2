"""PostgreSQL: a primary and its synchronous standby, as child processes.

A commit is confirmed when the standby has it on disk. The standby is promoted when the primary
dies, and accepts commits alone until the other server follows it, as cluster managers do it.

    with PostgresPair() as pair, pair.place() as place:
        store = place.open("sync")
        pair.fail_over()
"""

import shutil
from typing import Self

import psycopg
from sqlalchemy import URL, make_url

from backends.base import OwnServer
from backends.cluster import Cluster, ClusterPlace
from backends.postgres import START_SECONDS, Postgres, PostgresPlace, programs
from waiting import eventually

SETTLED = (
    "SELECT pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() AND NOT EXISTS "
    "(SELECT 1 FROM pg_stat_wal_receiver WHERE status = 'streaming')"
)

ALONE, IN_STEP = "''", "'*'"
"""Values of `synchronous_standby_names`."""


class PostgresPair(Cluster):
    """Two servers, one of which takes writes."""

    name = "postgres-pair"

    def __init__(self) -> None:
        self.primary: Postgres = Postgres.own(durable=True)
        self.standby: Postgres = Postgres.own(durable=True)
        self.nodes: tuple[Postgres, ...] = (self.primary, self.standby)

    def install(self) -> str:
        return str(programs())

    def start(self) -> Self:
        self.primary.start()
        try:
            self.rejoin(self.standby)
        except BaseException:
            self.stop()
            raise
        return self

    @property
    def url(self) -> str:
        """Address of both servers, of which a client takes the one that accepts writes."""
        hosts = [f"127.0.0.1:{make_url(node.url).port}" for node in self.nodes]
        query = {"host": hosts, "target_session_attrs": "read-write"}
        url = URL.create("postgresql", Postgres.user, database="postgres", query=query)
        return url.render_as_string(hide_password=False)

    def place(self) -> "PairPlace":
        return PairPlace(self)

    def settle(self) -> None:
        eventually(lambda: asked(self.standby, SETTLED), START_SECONDS)

    def take_over(self) -> None:
        self.primary, self.standby = self.standby, self.primary
        self.wait_for_standby(ALONE)
        asked(self.primary, "SELECT pg_promote()")

    def rejoin(self, node: OwnServer) -> None:
        assert isinstance(node, Postgres)
        shutil.rmtree(node.folder / "data", ignore_errors=True)
        node.source = self.primary
        node.start()
        self.wait_for_standby(IN_STEP)
        state = "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'"
        eventually(lambda: asked(self.primary, state) in {"sync", "quorum"}, START_SECONDS)

    def wait_for_standby(self, names: str) -> None:
        """Let the primary wait for a standby before it confirms a commit, or for none."""
        asked(self.primary, f"ALTER SYSTEM SET synchronous_standby_names = {names}")
        asked(self.primary, "SELECT pg_reload_conf()")


def asked(server: Postgres, statement: str) -> object:
    """Execute a statement on a server; return its first value, if it has any."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        result = connection.execute(statement)
        row = result.fetchone() if result.description else None
        return row[0] if row else None


class PairPlace(PostgresPlace, ClusterPlace):
    """Schema for a single test."""

    def __init__(self, pair: PostgresPair) -> None:
        super().__init__(pair.url)

    def url_of(self, node: OwnServer) -> str:
        assert isinstance(node, Postgres)
        url = make_url(node.url).update_query_dict({"schema": self.tables.schema or ""})
        return url.render_as_string(hide_password=False)
