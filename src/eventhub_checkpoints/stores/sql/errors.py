"""Mapping of PostgreSQL and SQLite errors.

Source: PostgreSQL 18, "Appendix A. PostgreSQL Error Codes"; SQLite, "Result and Error Codes".
"""

import re

from eventhub_checkpoints._shared.secrets import masked
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    StoreAccessError,
    StoreError,
    StoreNotReadyError,
    StoreUnavailableError,
)

WAYS = "store.create(), create_tables=True or create = true in a configuration"
NO_FILE = f"there is no such file: is its name right? Else make it with {WAYS}"
NO_TABLE = f"a table does not exist: create it with {WAYS}"
OLD_TABLE = f"the tables are of another version: migrate them with {WAYS}"
NEW_SCHEMA = re.compile(r'CREATE SCHEMA ("\w+")')
READ_ONLY = "25006"

POSTGRES: dict[str, tuple[type[CheckpointStoreError], str]] = {
    READ_ONLY: (
        StoreUnavailableError,
        "the server takes no writes: it is a standby, or read-only by its settings; "
        "target_session_attrs=read-write in the URL finds the primary of several hosts",
    ),
    "28": (StoreAccessError, "the server refused the login; are user and password right?"),
    "TLS": (StoreAccessError, "no encrypted connection as sslmode wants it; is the server right?"),
    "OPTION": (ConfigurationError, "an option of the URL has a value that libpq does not take"),
    "3D000": (StoreNotReadyError, "the database does not exist; create it"),
    "3F000": (
        StoreNotReadyError,
        "no schema to create the tables in: name one with schema=, or create one of the role's "
        "search_path with CREATE SCHEMA",
    ),
    "40001": (StoreUnavailableError, "another transaction came first"),
    "40P01": (StoreUnavailableError, "a deadlock with another transaction"),
    "42501": (StoreAccessError, "the role lacks a right"),
    "42703": (StoreNotReadyError, OLD_TABLE),
    "42P01": (StoreNotReadyError, NO_TABLE),
    "53100": (StoreError, "the server's disk is full; nothing was changed"),
    "53": (StoreUnavailableError, "the server is short of resources"),
    "55P03": (StoreUnavailableError, "a lock was not free in time"),
    "57": (StoreUnavailableError, "the server ended the request"),
    "08": (StoreUnavailableError, "the connection broke"),
}
"""By SQLSTATE or its class; any other is final, and reported unchanged."""

UNSAID = {
    "28P01": "password authentication failed|no pg_hba.conf entry|role .* does not exist"
    "|not permitted to log in",
    "3D000": "database .* does not exist",
    "42501": "permission denied",
    "OPTION": r'invalid (integer )?value "|invalid \w+ value: "',
    "TLS": "SSL was required|certificate verify failed|root certificate",
}
"""Messages of refusals at connect, where libpq reports no SQLSTATE. If the server's messages are in
another language, the refusal counts as an unavailable server: it is retried, then shown in full.
"""

SQLITE: dict[str, tuple[type[StoreError], str]] = {
    "SQLITE_BUSY": (StoreUnavailableError, "another program holds the file's lock"),
    "SQLITE_LOCKED": (StoreUnavailableError, "another connection holds the table's lock"),
    "SQLITE_FULL": (StoreError, "the disk is full; nothing was changed"),
    "SQLITE_IOERR": (StoreError, "the disk failed or is full; nothing was changed"),
    "SQLITE_READONLY": (StoreAccessError, "the file or its folder may not be written"),
    "SQLITE_PERM": (StoreAccessError, "the file may not be read"),
    "SQLITE_AUTH": (StoreAccessError, "the file may not be used"),
    "SQLITE_CANTOPEN": (
        StoreNotReadyError,
        "the file cannot be opened; does its folder exist, and may it be written?",
    ),
    "SQLITE_NOTADB": (StoreError, "the file is no SQLite database"),
    "SQLITE_CORRUPT": (StoreError, "the file is damaged; restore it, or begin with a new one"),
}
"""By the result code, or the longest prefix of it."""


def postgres_failure(
    sqlstate: str | None, said: str, where: str, statement: str, unreached: str | None = None
) -> CheckpointStoreError:
    """Return the error for a SQLSTATE.

    Args:
        sqlstate: five characters; None if there is none.
        said: the server's or the driver's message.
        where: the database, for messages.
        statement: the statement; `""` while connecting.
        unreached: why there is no connection, if known.
    """
    code = sqlstate or next((key for key, words in UNSAID.items() if re.search(words, said)), "08")
    kind, meaning = POSTGRES.get(code) or POSTGRES.get(code[:2]) or (StoreError, "it failed")
    if unreached and code[:2] == "08":
        meaning = unreached
    if code == "42501" and statement:
        meaning = refusal(statement)
    return kind(f"{where}: {meaning} ({sqlstate or 'no code'}: {first_line(said)})")


def sqlite_failure(name: str | None, said: str, where: str) -> StoreError:
    """Return the error for a result code's name."""
    if said.startswith("no such table"):
        return StoreNotReadyError(f"{where}: {NO_TABLE} ({said})")
    if said.startswith(("no such column", "table ")) and "column" in said:
        return StoreNotReadyError(f"{where}: {OLD_TABLE} ({said})")
    known = [code for code in SQLITE if (name or "").startswith(code)]
    kind, meaning = SQLITE[max(known, key=len)] if known else (StoreError, "it failed")
    return kind(f"{where}: {meaning} ({name or 'no code'}: {first_line(said)})")


def refusal(statement: str) -> str:
    """Return which permission the role lacks, and how to fix it."""
    if schema := NEW_SCHEMA.search(statement):
        return (
            f"schema {schema[1]} does not exist, and the role may not create it: say CREATE SCHEMA "
            f"{schema[1]} as one who may, and GRANT USAGE, CREATE on it to the role"
        )
    return f"the role lacks a right; this takes {rights(statement)}"


def rights(statement: str) -> str:
    """Return the privileges that a statement needs; a conditional write also reads."""
    found = re.findall(r"\b(INSERT|UPDATE|DELETE|CREATE)\b", statement)
    return " and ".join(dict.fromkeys(("SELECT", *found)))


def first_line(said: str) -> str:
    """Return the first line of a message; the others repeat the statement, or give hints."""
    return masked(said.strip().partition("\n")[0])
