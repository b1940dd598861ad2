"""What every test may ask for: the real servers, and the rule about missing ones.

A test that needs a part which is not here calls `pytest.skip` with a reason that names it. With
`REQUIRE_SERVERS=1` every skip is a failure, so a run that promises all parts cannot leave one out.
"""

import gc
import os
import signal
import socket
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import ContainerClient

import campaigns
from azurite import Azurite, connection_string
from backends import BACKENDS, VARIANTS, Backend, Place, ServerMissingError, Variant
from backends.blob import Blob
from eventhub_checkpoints.conformance.clients import Loop
from eventhub_checkpoints.localhub.connection import Connection
from eventhub_checkpoints.records import Scope
from examples import register_profiles
from fault_proxy import FaultProxy
from shared_servers import Borrowed, SharedServers
from variants import SIMULATED
from waiting import eventually

register_profiles()
# Every Spark that a test starts, in this process or another, takes its settings from here.
os.environ.setdefault("SPARK_CONF_DIR", str(Path(campaigns.__file__).with_name("spark_conf")))


def failed_if_servers_are_required(report: Any) -> Any:
    required = os.environ.get("REQUIRE_SERVERS", "0") not in ("", "0")
    if required and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"REQUIRE_SERVERS is set, so this is a failure: {report.longrepr[2]}"
    return report


def link_spark(home: Path) -> None:
    """Make a home of Spark from links to the installed PySpark, without its zip.

    Spark puts that zip first on the path of its Python processes. Each of them would compile what
    it imports, for a second of CPU time; without it they import the installed modules.
    """
    found = find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        return
    [package] = map(Path, found.submodule_search_locations)
    for each in package.iterdir():
        if each.name != "python":
            (home / each.name).symlink_to(each)
    os.environ["SPARK_HOME"] = str(home)


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers here: tests run this file with other settings, too."""
    if "SPARK_HOME" not in os.environ:
        folder = TemporaryDirectory(prefix="spark-home-")
        config.add_cleanup(folder.cleanup)
        link_spark(Path(folder.name))
    if socket_of_the_run := getattr(config, "workerinput", {}).get("servers"):
        config.stash[BORROWED] = Borrowed(socket_of_the_run)
    config.addinivalue_line("markers", "server: needs a server of a backend, which it starts")
    config.addinivalue_line(
        "markers", "waits: waits for a hub, a client, Spark or a process, or tries many cases"
    )
    config.addinivalue_line(
        "markers",
        "long: on the real clock, or kills, or in depth: `tox -e long` runs it, alone and in turn",
    )
    # A shell ignores Ctrl-C for what it starts in the background, and the processes that tests
    # start would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


WAITING = {"hub", "server", "stage", "site", "runs", "spark"}
"""Fixtures of a hub, a client or a Spark session, for which a test waits."""
WAITING_FOLDERS = (
    "cli",
    "consume/test_consume_",
    "consume/test_process_",
    "localhub",
    "receive/amqp/test_*",
    "receive/arrow",
    "receive/kafka",
    "receive/test_*",
    "stores/backends",
    "stores/sdk",
)
"""Paths below which nearly every test waits for one, or for a process."""

LONGEST = (
    "stores/backends/test_conformance",
    "spark/test_smoke",
    "test_docs_blocks",
    "stores/sdk/",
    "stores/sql/",
    "cli/",
    "processing/",
)
"""Where the longest tests are: they begin first, so that no process is left alone with one."""
SHARED = pytest.StashKey[SharedServers]()
"""In the process that starts the others: the servers of the run."""
BORROWED = pytest.StashKey[Borrowed]()
"""In one of several processes that share the tests: how it asks for those servers."""


def announce(config: pytest.Config, text: str) -> None:
    """Tell on a line of its own what the run starts, while tests run."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.ensure_newline()
        reporter.write_line(text)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker where to ask for servers."""
    if SHARED not in node.config.stash:
        shared = SharedServers(partial(announce, node.config))
        node.config.stash[SHARED] = shared
        node.config.add_cleanup(shared.close)
    node.workerinput["servers"] = node.config.stash[SHARED].socket


def pytest_report_header() -> list[str]:
    return campaigns.header()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    report = failed_if_servers_are_required((yield))
    borrowed = item.config.stash.get(BORROWED, None)
    if report.failed and borrowed is not None and "servers" in getattr(item, "fixturenames", ()):
        report.sections += [("server of this run", ended) for ended in borrowed.ended()]
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Any:
    return failed_if_servers_are_required((yield))


FINDINGS = pytest.StashKey[dict[str, list[str]]]()
"""What tests have found on real servers, by title; told at the end of the run."""


@pytest.fixture(scope="session")
def tell(pytestconfig: pytest.Config) -> Callable[[str, str], None]:
    """Adds a line to a title of the run's summary."""
    findings = pytestconfig.stash.setdefault(FINDINGS, {})

    def add(title: str, line: str) -> None:
        findings.setdefault(title, []).append(line)

    return add


SEARCHED = pytest.StashKey[Counter[str]]()
"""What was searched for planted secrets, by kind; the run's summary has the sums."""


@pytest.fixture(scope="session")
def searched(pytestconfig: pytest.Config) -> Callable[[str, int], None]:
    """Counts what was searched for a secret, and shows none."""
    counts = pytestconfig.stash.setdefault(SEARCHED, Counter())

    def add(kind: str, count: int) -> None:
        counts[kind] += count

    return add


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    gc.unfreeze()  # else some libraries report leaks as they are unloaded
    # One of several processes that share the tests has no summary; it sends what it has.
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["findings"] = session.config.stash.get(FINDINGS, {})
        session.config.workeroutput["searched"] = dict(session.config.stash.get(SEARCHED, {}))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    findings = node.config.stash.setdefault(FINDINGS, {})
    for title, lines in getattr(node, "workeroutput", {}).get("findings", {}).items():
        findings.setdefault(title, []).extend(lines)
    searched = node.config.stash.setdefault(SEARCHED, Counter())
    searched.update(getattr(node, "workeroutput", {}).get("searched", {}))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for title, lines in config.stash.get(FINDINGS, {}).items():
        terminalreporter.section(title)
        for line in lines:
            terminalreporter.line(f"{title}: {line}")
    if counts := config.stash.get(SEARCHED, None):
        terminalreporter.section("planted secrets")
        for kind, count in sorted(counts.items()):
            # One that is shown fails its test, which then does not count.
            terminalreporter.line(f"planted secrets: {kind}: {count:,} searched, 0 shown")


FORGETFUL = (
    "chaos/test_stalls.py",
    "cli",
    "consume",
    "jvm",
    "kafka",
    "localhub",
    "operations",
    "processing",
    "receive/amqp/test_fast_websocket.py",
    "receive/arrow/test_read_batches.py",
    "receive/arrow/test_read_batches_aio.py",
    "receive/test_batches.py",
    "receive/test_hub.py",
    "receive/test_refusals.py",
    "send/test_sending.py",
    "spark/test_network.py",
    "spark/test_outages.py",
    "stores/sdk",
    "ui",
)
"""Tests that use a library which leaves sockets to the garbage collector.

PySpark leaves that of every `collect`; azure-eventhub 5.15.1 that of a connection which the hub has
ended (`_pyamqp/_connection.py`: `close` notes the end, and `_disconnect` then closes nothing). That
the local hub itself leaves none is seen in `localhub/test_command.py`.
"""


def is_simulated(item: pytest.Item) -> bool:
    """Whether a test's client runs on the simulated clock, so that it waits for nothing."""
    callspec = getattr(item, "callspec", None)
    return callspec is not None and callspec.params.get("variant") == SIMULATED


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that `tox -e fast` leaves out, where the file does not, and the forgetful."""
    here = Path(__file__).parent

    def rank(item: pytest.Item) -> int:
        path = item.path.relative_to(here).as_posix()
        return next((n for n, start in enumerate(LONGEST) if path.startswith(start)), len(LONGEST))

    items.sort(key=rank)
    for item in items:
        path = item.path.relative_to(here).as_posix()
        asked = set(getattr(item, "fixturenames", ()))
        if "servers" in asked:
            item.add_marker(pytest.mark.server)
        if (asked & WAITING and not is_simulated(item)) or any(
            fnmatch(path, f"{pattern}*") for pattern in WAITING_FOLDERS
        ):
            item.add_marker(pytest.mark.waits)
        if path.startswith(FORGETFUL):
            for message in ("unclosed", "loop is closed"):
                item.add_marker(pytest.mark.filterwarnings(f"ignore:{message}:ResourceWarning"))


def pytest_collection_finish() -> None:
    """Leave what is imported by now out of every later garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """What the tests of a file have left open is said of that file, and of none after it."""
    # pytest still holds the log of a file's last test while it ends that file, and an error in the
    # log holds the client that raised it.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    yield
    gc.collect()


@pytest.fixture(scope="session")
def servers(pytestconfig: pytest.Config) -> Iterator[Callable[[str], Backend]]:
    """Gives the running backend of a name; each is started once, when it is first asked for.

    Processes that share the tests share the servers too, and cannot kill or suspend them.
    """
    borrowed = pytestconfig.stash.get(BORROWED, None)
    with ExitStack() as started:

        @cache
        def server(name: str) -> Backend:
            try:
                if borrowed is not None:
                    return started.enter_context(borrowed.server(name))
                if BACKENDS[name].variable:
                    announce(pytestconfig, f"{name} starts")
                return started.enter_context(BACKENDS[name]())
            except ServerMissingError as missing:
                pytest.skip(str(missing))

        yield server


@pytest.fixture(scope="session")
def azurite(servers: Callable[[str], Backend]) -> Azurite:
    """A running Azurite; prepare it with `python tools/prepare.py`, no test downloads it."""
    backend = servers("blob")
    assert isinstance(backend, Blob)
    return backend.azurite


@dataclass(frozen=True)
class BlobContainer:
    """A fresh container, and how to reach it."""

    endpoint: str
    name: str

    @property
    def connection_string(self) -> str:
        return connection_string(self.endpoint)

    @property
    def url(self) -> str:
        return f"{self.endpoint}/{self.name}"

    def client(self) -> ContainerClient:
        """A client of azure-storage-blob; the caller closes it."""
        return ContainerClient.from_connection_string(self.connection_string, self.name)

    def through(self, endpoint: str) -> Self:
        """The same container, reached at another address, such as a proxy's."""
        return replace(self, endpoint=endpoint)


@pytest.fixture
def blob_container(azurite: Azurite) -> Iterator[BlobContainer]:
    """A container of this test's own, deleted after it."""
    container = BlobContainer(azurite.endpoint, f"test-{uuid.uuid4().hex}")
    with container.client() as client:
        client.create_container()
        yield container
        with suppress(ResourceNotFoundError):  # the test may have deleted it
            client.delete_container()


@pytest.fixture
def proxy(azurite: Azurite) -> Iterator[FaultProxy]:
    """A proxy in front of Azurite that counts requests and can be told to misbehave."""
    with FaultProxy(azurite.endpoint) as running:
        yield running


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, servers: Callable[[str], Backend]) -> Backend:
    """Every backend in turn."""
    return servers(request.param)


@pytest.fixture
def place(backend: Backend) -> Iterator[Place]:
    """An empty place of this test's own on the backend, with all that a store needs."""
    with backend.place() as created:
        yield created


@pytest.fixture(scope="session")
def closed_port() -> Iterator[int]:
    """A port on which nobody listens, and that nobody else gets."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture
def accepted_connections(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    """Connections that local hubs of this process accept during the test."""
    accepted: list[Connection] = []
    accept = Connection.connection_made

    def connection_made(self: Connection, transport: Any) -> None:
        accepted.append(self)
        accept(self, transport)

    monkeypatch.setattr(Connection, "connection_made", connection_made)
    return accepted


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    """An event loop in a thread, for the stores and clients of asyncio."""
    with Loop() as running:
        yield running


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> Variant:
    """Sync and aio in turn."""
    return request.param


@pytest.fixture
def scope() -> Scope:
    """A consumer group in a namespace that no other test uses."""
    return Scope(f"ns-{uuid.uuid4().hex[:8]}.servicebus.windows.net", "orders", "$Default")


@pytest.fixture
def wait() -> Callable[..., Any]:
    """Waits for a condition; nothing here waits for a time."""
    return eventually
