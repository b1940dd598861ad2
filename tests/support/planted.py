"""Secrets that work, and the search for them in everything that a program shows.

`Heard` collects what people get to see; `SECRETS_OF` opens each backend with its kinds of secrets.
"""

import base64
import logging
import pickle
import re
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, unquote

from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.data.tables import TableSasPermissions, generate_table_sas
from azure.storage.blob import generate_container_sas
from sqlalchemy import make_url

from eventhub_checkpoints.stores.azure_storage.account import EMULATOR_ACCOUNT, EMULATOR_KEY
from telemetry_records import Records, recording

WORD = "planted-Pa55/word@+="
KEY = base64.b64encode(b"planted key of the hub, 32 bytes").decode()
WRONG_KEY = base64.b64encode(b"another key of the hub, 32 bytes").decode()
LIVE_SIGNATURE = re.compile(
    r"(?i)(?:\bsig(?:nature)?=|SharedKey [\w-]+:|Bearer )(?!\*\*\*|REDACTED)"
)
"""A signature or token is a secret as long as it is valid, though it is not what was planted."""


class Heard(logging.Handler):
    """What people get to see: all logs with their tracebacks, warnings, errors and `repr`s.

    Attributes:
        texts: each of them.
        telemetry: spans and metrics that were exported.
        searched: number of texts in which `check` has found no secret.
    """

    def __init__(self, telemetry: Records) -> None:
        super().__init__(logging.DEBUG)
        self.searched = 0
        self.texts: list[str] = []
        self.telemetry = telemetry

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line of the log."""
        # Handlers of users may show the arguments, too, as those for JSON do.
        self.texts.append(f"{record.name}: {self.format(record)} {record.args!r}")

    @contextmanager
    def deaf(self) -> Iterator[None]:
        """Leave out what a test itself does with secrets."""
        before = len(self.texts)
        yield
        del self.texts[before:]

    def see(self, *values: object) -> None:
        """Look at objects as they are printed."""
        for value in values:
            self.texts.append(f"{value} {value!r}")

    @contextmanager
    def error(self) -> Iterator[None]:
        """Look at an error with its causes, if one is raised, and at what another process gets."""
        try:
            yield
        except Exception as error:
            self.texts.append("".join(traceback.format_exception(error)))
            for each in (error, error.__cause__, error.__context__):
                self.see(each, getattr(each, "__dict__", None))
                with suppress(Exception):
                    self.texts.append(repr(pickle.dumps(each)))

    def check(self, *secrets: str) -> None:
        """Find none of the secrets, however it is spelled, and no signature that is valid."""
        assert self.texts
        texts = [*self.texts, self.telemetry.text()]
        for secret in secrets:
            encoded = base64.b64encode(secret.encode()).decode()
            for spelled in {secret, quote(secret), quote(secret, safe=""), encoded}:
                shown = [text for text in texts if spelled in text]
                assert not shown, f"a secret is shown: {shown[0][:3000]}"
        signed = [text for text in texts if LIVE_SIGNATURE.search(text)]
        assert not signed, f"a signature is shown: {signed[0][:3000]}"
        self.searched = len(texts)


@contextmanager
def listening() -> Iterator[Heard]:
    """Hear everything, with the loggers of all libraries at DEBUG."""
    root = logging.getLogger()
    loggers = [root, *(logging.getLogger(name) for name in list(root.manager.loggerDict))]
    levels = [(each, each.level) for each in loggers]
    for each in loggers:
        each.setLevel(logging.DEBUG if each is root else logging.NOTSET)
    with recording() as telemetry, warnings.catch_warnings(record=True) as warned:
        heard = Heard(telemetry)
        root.addHandler(heard)
        try:
            yield heard
            heard.see(*warned)
        finally:
            root.removeHandler(heard)
            for each, level in levels:
                each.setLevel(level)


Secret = tuple[str, dict[str, Any], list[str]]
"""URL and settings of a store, and the secrets in them."""


def in_url(url: str, user: str) -> str:
    return url.replace("//", f"//{user}:{quote(WORD, safe='')}@", 1)


def secrets_of_sql(place: Any, heard: Heard) -> Iterator[Secret]:
    url = make_url(place.url)
    if url.drivername == "mysql":
        name = f"user_{place.database[-16:]}"
        with heard.deaf():
            place.execute(f"CREATE USER {name} IDENTIFIED BY '{WORD}'")
            place.execute(f"GRANT ALL ON {place.database}.* TO {name}")
        url = url.set(username=name)
    yield url.set(password=WORD).render_as_string(hide_password=False), {}, [WORD]
    yield url.render_as_string(hide_password=False), {"credential": lambda: WORD}, [WORD]


def secrets_of_redis(place: Any, heard: Heard) -> Iterator[Secret]:
    name = place.namespace
    place.raw.execute_command("ACL", "SETUSER", name, "reset", "on", f">{WORD}", "~*", "+@all")
    yield in_url(place.url, name), {}, [WORD]


def secrets_of_cassandra(place: Any, heard: Heard) -> Iterator[Secret]:
    yield in_url(place.url, "app"), {}, [WORD]


def secrets_of_blob(place: Any, heard: Heard) -> Iterator[Secret]:
    expiry = datetime.now(UTC) + timedelta(hours=1)
    sas = generate_container_sas(
        EMULATOR_ACCOUNT,
        place.url.rpartition("/")[2],
        EMULATOR_KEY,
        permission="racwdl",
        expiry=expiry,
    )
    signature = unquote(sas.rpartition("sig=")[2].partition("&")[0])
    yield f"{place.url}?{sas}", {}, [signature]
    yield place.url, {"credential": AzureSasCredential(sas)}, [signature]
    key = AzureNamedKeyCredential(EMULATOR_ACCOUNT, EMULATOR_KEY)
    yield place.url, {"credential": key}, [EMULATOR_KEY]
    # A token is never sent over plain HTTP, to this address neither.
    yield place.url, {"credential": Token()}, [WORD]


def secrets_of_table(place: Any, heard: Heard) -> Iterator[Secret]:
    expiry = datetime.now(UTC) + timedelta(hours=1)
    key = AzureNamedKeyCredential(EMULATOR_ACCOUNT, EMULATOR_KEY)
    rights = TableSasPermissions.from_string("raud")
    sas = generate_table_sas(key, place.url.rpartition("/")[2], permission=rights, expiry=expiry)
    signature = unquote(sas.rpartition("sig=")[2].partition("&")[0])
    yield f"{place.url}?{sas}", {}, [signature]
    yield place.url, {"credential": AzureSasCredential(sas)}, [signature]
    yield place.url, {"credential": key}, [EMULATOR_KEY]


class Token:
    """Credential with a token that nobody accepts."""

    def get_token(self, *_: str, **__: Any) -> AccessToken:
        return AccessToken(WORD, 2**31)


SECRETS_OF = {
    "blob": secrets_of_blob,
    "table": secrets_of_table,
    "postgres": secrets_of_sql,
    "mysql": secrets_of_sql,
    "redis": secrets_of_redis,
    "cassandra": secrets_of_cassandra,
}
