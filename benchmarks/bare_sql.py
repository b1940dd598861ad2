"""The statements of a program that keeps one connection to a SQL database, and no engine."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self
from uuid import uuid4

import aiomysql
import aiosqlite
import psycopg
import pymysql
from sqlalchemy import TextClause
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.engine import URL, Dialect, make_url

from benchmarks.rows import Row
from eventhub_checkpoints.stores.sql.statements import Statements, columns
from eventhub_checkpoints.stores.sql.tables import NAMES, Tables
from eventhub_checkpoints.stores.sql.url import DIALECTS

CONNECTIONS = 4
"""To a server, for many tasks; as many as the store has."""
DURABLE = "PRAGMA synchronous = FULL"
COMMITTED = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
SPELLINGS: dict[str, Dialect] = {
    "mysql": mysql.dialect(paramstyle="pyformat"),
    "postgresql": postgresql.dialect(paramstyle="pyformat"),
    "sqlite": sqlite.dialect(paramstyle="named"),
}
"""With parameters by name, as the drivers take them."""


MYSQL_TABLES = Tables("eventhub_checkpoints", quote=DIALECTS["mysql"].quote)


def with_new_etags(rows: Sequence[Row]) -> list[Row]:
    """The rows, as parameters of a claim."""
    return [{**row, "new_etag": uuid4().hex} for row in rows]


def with_version(row: Row) -> Row:
    """A checkpoint as the parameters of a write."""
    return {**row, "version": uuid4().hex, "writer": "bare"}


def spelled(statement: TextClause, dialect: str) -> str:
    """A statement as the driver takes it."""
    return str(statement.compile(dialect=SPELLINGS[dialect]))


class BareSql:
    """One open connection, on which every statement is a transaction of its own."""

    def __init__(self, connection: Any, dialect: str, tables: Tables) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        say = Statements(tables, DIALECTS[dialect])
        self._renew, self._renew_batch, self._create_batch, self._checkpoint, self._list = (
            spelled(statement, dialect)
            for statement in (
                say.renew[0],
                say.renew_batch,
                say.create_batch,
                say.force_checkpoint[0],
                say.ownerships,
            )
        )

    def claim_ownership(self, rows: Sequence[Row]) -> list[Row]:
        claims = with_new_etags(rows)
        renewing = bool(rows[0]["etag"])
        if renewing and len(rows) == 1:
            # One row needs no arrays.
            self._cursor.execute(self._renew, claims[0])
        else:
            self._claim_together(self._renew_batch if renewing else self._create_batch, claims)
        assert self._cursor.rowcount == len(rows)
        return [{**row, "etag": claim["new_etag"]} for row, claim in zip(rows, claims, strict=True)]

    def update_checkpoint(self, row: Row) -> None:
        self._cursor.execute(self._checkpoint, with_version(row))

    def list_ownership(self, *names: str) -> list[Any]:
        self._cursor.execute(self._list, dict(zip(NAMES, names, strict=True)))
        return list(self._cursor.fetchall())

    def close(self) -> None:
        self._connection.close()

    def _claim_together(self, statement: str, claims: list[Row]) -> None:
        raise NotImplementedError


class BareSqlite(BareSql):
    """The module of the standard library."""

    def __init__(self, url: str) -> None:
        connection = sqlite3.connect(str(make_url(url).database), isolation_level=None)
        connection.execute(DURABLE)
        super().__init__(connection, "sqlite", Tables("eventhub_checkpoints"))

    def _claim_together(self, statement: str, claims: list[Row]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._cursor.executemany(statement, claims)
        self._connection.execute("COMMIT")


class BarePostgres(BareSql):
    """Psycopg."""

    def __init__(self, url: str) -> None:
        address, tables = parted(url)
        connection = psycopg.connect(address, autocommit=True)
        super().__init__(connection, "postgresql", tables)

    def _claim_together(self, statement: str, claims: list[Row]) -> None:
        self._cursor.execute(statement, columns(claims))


class BareMysql(BareSql):
    """PyMySQL."""

    def __init__(self, url: str) -> None:
        connection = pymysql.connect(**address_of_mysql(url), init_command=COMMITTED)
        super().__init__(connection, "mysql", MYSQL_TABLES)

    def _claim_together(self, statement: str, claims: list[Row]) -> None:
        self._cursor.execute(statement, DIALECTS["mysql"].batch(claims))


class AioMysql:
    """A connection of aiomysql with the methods of the other drivers' connections."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def execute(self, statement: str, values: Row) -> Any:
        cursor = await self._connection.cursor()
        await cursor.execute(statement, values)
        return cursor

    async def close(self) -> None:
        await self._connection.ensure_closed()


class BareSqlAio:
    """Connections that tasks take in turn."""

    def __init__(self, connections: Sequence[Any], dialect: str, tables: Tables) -> None:
        self._connections = connections
        say = Statements(tables, DIALECTS[dialect])
        self._checkpoint = spelled(say.force_checkpoint[0], dialect)
        self._list = spelled(say.ownerships, dialect)
        self._free: asyncio.Queue[Any] = asyncio.Queue()
        for connection in connections:
            self._free.put_nowait(connection)

    @classmethod
    async def sqlite(cls, url: str) -> Self:
        """One connection to a file: all would wait for its one lock."""
        path = str(make_url(url).database)
        connection = await aiosqlite.connect(path, isolation_level=None)
        await connection.execute(DURABLE)
        return cls([connection], "sqlite", Tables("eventhub_checkpoints"))

    @classmethod
    async def postgres(cls, url: str) -> Self:
        """Several connections to a server."""
        address, tables = parted(url)
        opened = [
            await psycopg.AsyncConnection.connect(address, autocommit=True)
            for _ in range(CONNECTIONS)
        ]
        return cls(opened, "postgresql", tables)

    @classmethod
    async def mysql(cls, url: str) -> Self:
        """Several connections to a server."""
        opened = [
            AioMysql(await aiomysql.connect(**address_of_mysql(url), init_command=COMMITTED))
            for _ in range(CONNECTIONS)
        ]
        return cls(opened, "mysql", MYSQL_TABLES)

    async def update_checkpoint(self, row: Row) -> None:
        async with self._executed(self._checkpoint, with_version(row)):
            pass

    async def list_ownership(self, *names: str) -> list[Any]:
        async with self._executed(self._list, dict(zip(NAMES, names, strict=True))) as cursor:
            return list(await cursor.fetchall())

    @asynccontextmanager
    async def _executed(self, statement: str, values: Row) -> AsyncIterator[Any]:
        connection = await self._free.get()
        try:
            cursor = await connection.execute(statement, values)
            yield cursor
            await cursor.close()
        finally:
            self._free.put_nowait(connection)

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()


def address_of_mysql(url: str) -> dict[str, Any]:
    """What both drivers take of a store's URL."""
    found: URL = make_url(url)
    return {
        "host": found.host,
        "port": found.port or 3306,
        "user": found.username,
        "password": found.password or "",
        "db": found.database,
        "autocommit": True,
    }


def parted(url: str) -> tuple[str, Tables]:
    """What libpq takes of a store's URL, and the tables in its schema."""
    found: URL = make_url(url)
    schema = found.query.get("schema")
    address = found.difference_update_query(["schema"])
    tables = Tables("eventhub_checkpoints", str(schema) if schema else None)
    return address.render_as_string(hide_password=False), tables
