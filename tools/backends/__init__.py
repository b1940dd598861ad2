"""The backends by name; each in a file of its own."""

from backends.base import VARIANTS, Backend, OwnServer, Place, ServerMissingError, Variant
from backends.blob import Blob
from backends.cassandra import Cassandra
from backends.memory import Memory
from backends.mysql import Mysql
from backends.postgres import Postgres
from backends.redis import RedisServer
from backends.sqlite import Sqlite
from backends.table import Table

__all__ = ["BACKENDS", "VARIANTS", "Backend", "Variant", "OwnServer", "Place", "ServerMissingError"]

BACKENDS: dict[str, type[Backend]] = {
    "memory": Memory,
    "blob": Blob,
    "table": Table,
    "sqlite": Sqlite,
    "postgres": Postgres,
    "mysql": Mysql,
    "redis": RedisServer,
    "cassandra": Cassandra,
}
