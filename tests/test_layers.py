"""Imports go one way, and an extra's driver stays in the extra's own modules."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import eventhub_checkpoints
from eventhub_checkpoints.stores import backends
from waiting import LIMIT

PACKAGE = "eventhub_checkpoints"
ROOT = Path(eventhub_checkpoints.__file__).parent

GROUND = {
    *("records", "errors", "_shared.arguments", "_shared.foreign_json", "_shared.offset_words"),
    *("_shared.partition_keys", "_shared.settings", "_shared.secrets", "_shared.signals"),
}
REGISTRY = {"registry", "aio.registry"}
ROOMS = (
    "receive.columns",
    "receive.amqp.decoder",
    "receive.arrow",
    "_shared",
    "sdk",
    "amqp",
    "stores",
    "processing",
    "consume",
    "dead_letters",
)
FOLDERS = (
    *ROOMS,
    "localhub",
    "testing",
    "receive",
    "send",
    "spark",
    "conformance",
    "operations",
    "ui",
    "cli",
)
"""A module belongs to the first of these that its name begins with."""

BELOW_SHELLS = {"ground", "_shared", "sdk"}
RECEIVE = {"receive", "receive.arrow", "receive.columns"}
BELOW_SPARK = {*BELOW_SHELLS, "stores", *RECEIVE, "registry", "public"}
ARROWS: dict[str, set[str]] = {
    "ground": set(),
    "amqp": set(),
    # What is private in the official client: the ways to it are typed, and end here.
    "sdk": {"ground"},
    "_shared": {"ground", "sdk"},
    "dead_letters": BELOW_SHELLS,
    "stores": {*BELOW_SHELLS, "dead_letters"},
    "processing": BELOW_SHELLS,
    "localhub": {"ground", "amqp"},
    "testing": {"ground", "public", "localhub"},
    "receive.columns": {"ground"},
    "receive.amqp.decoder": {"ground", "amqp", "receive.columns"},
    "receive": {*BELOW_SHELLS, "amqp", "receive.columns", "receive.amqp.decoder"},
    # What puts receiving and a store together, for readers without Spark.
    "receive.arrow": {*BELOW_SHELLS, "stores", "receive", "registry"},
    # A member of a group: receiving for what processes and saves.
    "consume": {*BELOW_SHELLS, "processing", *RECEIVE, "registry"},
    "send": {*BELOW_SHELLS, "amqp", "receive", "receive.columns"},
    "public": {*BELOW_SPARK, "processing", "consume", "dead_letters"},
    "registry": {*BELOW_SHELLS, "stores", "public"},
    "spark": {*BELOW_SPARK, "send"},
    "conformance": BELOW_SPARK,
    "operations": {*BELOW_SPARK, "dead_letters"},
    "ui": {*BELOW_SHELLS, "public", "receive", "operations"},
    "cli": {
        "top",
        *BELOW_SPARK,
        "dead_letters",
        "operations",
        "ui",
        "spark",
        "conformance",
        "localhub",
    },
    "top": {"ground", "public", "processing", "registry"},
}

CORE = {"ground", "sdk", "_shared", "stores", "dead_letters", "processing"}
"""What every consumer with a store needs: without the rest, the package is small."""

# The official client is a hard dependency, and azure-core is one of the client's.
CLIENT = {"azure.eventhub", "azure.core"}
AZURE_STORAGE = {"azure.core", "aiohttp", "certifi", "requests", "urllib3", "yarl"}
"""What services of a storage account share: no driver of one of them."""
BACKENDS = {
    "blob": {*AZURE_STORAGE, "azure.storage"},
    "table": AZURE_STORAGE,
    "sql": {"sqlalchemy"},  # which imports the driver of a URL
    "redis": {"redis"},
    "cassandra": {"cassandra"},
}
"""The drivers of each backend, for the modules in its folder of `stores`."""
BACKEND_MODULE = re.compile(rf"stores\.(?:legacy\.)?({'|'.join(BACKENDS)})(?:\.\w+)*")
WITHOUT_IO = re.compile(r"(?:_shared|stores|processing)(?:\.\w+)*")
"""Outside of `_async` and `_sync`, what these decide needs no client and no driver."""
ARROW_MODULES = {"receive.batches", "send.arrow"}
METRICS_MODULES = {"cli.serve.metrics"}
KEDA_MODULES = {"cli.serve.external_scaler"}
TRACING_MODULES = {"_shared.telemetry"}
MAY_IMPORT: dict[str, set[str]] = {
    "ground": set(),
    "amqp": set(),
    "localhub": set(),
    "receive.columns": set(),
    "receive.amqp.decoder": set(),
    "sdk": CLIENT,
    "_shared": CLIENT,
    "dead_letters": CLIENT,
    "stores": CLIENT,
    "processing": CLIENT,
    "public": CLIENT,
    "registry": CLIENT,
    "top": CLIENT,
    "receive": CLIENT,
    "receive.arrow": {*CLIENT, "pyarrow"},
    "consume": {*CLIENT, "pyarrow"},
    "send": CLIENT,
    "spark": {*CLIENT, "pyspark", "pyarrow"},
    "conformance": {*CLIENT, "pytest"},
    "testing": set(),
    "operations": CLIENT,
    "ui": {"jinja2", "starlette", "uvicorn"},
    "cli": {*CLIENT, "azure.storage", "filelock", "platformdirs", "pyspark", "rich", "typer"},
}
DRIVERS = [
    *("azure.storage", "aiohttp", "sqlalchemy", "redis", "cassandra"),
    *("azure.identity", "pyspark", "pyarrow", "confluent_kafka", "typer", "rich"),
    *("prometheus_client", "grpc", "google.protobuf"),
    *("jinja2", "starlette", "uvicorn"),
    "opentelemetry",
]

LAZY = {
    "sdk.stack": "a program without asyncio need not import it",
    "_shared.tracing": "opentelemetry-api is no dependency; it is used where it is installed",
    "registry": "the module that a URL names is known only then",
    "conformance.__main__": "the module that a URL names is known only then",
    "stores.sql.postgresql": "the driver that a URL names is known only then",
    "stores.azure_storage.connection_options": "only a store behind a proxy needs requests",
    "stores.blob._async.store": "azure-storage-blob is slow to import, and few stores need it",
    "stores.blob._sync.store": "azure-storage-blob is slow to import, and few stores need it",
    "stores.connections": "azure-identity is no dependency; it is used where it is installed",
    "processing.statistics": "opentelemetry-api is no dependency; it is used where it is installed",
    "receive.credentials": "azure-identity is no dependency; it is used where it is installed",
    "operations.dead_letters": "only a table of dead letters needs SQLAlchemy",
    "spark.options": "only a job that asks for Kafka needs its client",
    "spark.validation": "only a message names the version of PySpark",
    "spark.sink.writer": "only a job that asks for Kafka needs its client",
    "spark.source.data_source": "a job that only reads needs no sink",
    "localhub.local": "only who has the client asks for the client's arguments",
    "spark.query_follower": "a listener is made of PySpark, and positions do without it",
    "iothub_react": "a reader needs the driver of its own backend only",
    "cli": "a command imports what it runs, so it starts at once and lacks only its own extra",
}
"""Modules and folders that import inside of a function, and why."""


@dataclass(frozen=True)
class Arrow:
    """One import: who, whom, and how."""

    module: str
    target: str
    is_lazy: bool
    is_for_types: bool

    def __str__(self) -> str:
        return f"{self.module} -> {self.target}"


def module_name(path: Path) -> str:
    """The module's name below the package; `""` is the package itself."""
    return (
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix("__init__").rstrip(".")
    )


def layer(module: str) -> str:
    """The layer that a module of ours is part of."""
    if module in ("", "aio"):
        return "top"
    if module in GROUND:
        return "ground"
    if module in REGISTRY:
        return "registry"
    for folder in FOLDERS:
        if f"{module}.".startswith(f"{folder}."):
            return folder
    return "public"


def targets(node: ast.AST, package: list[str]) -> list[str]:
    """The full names that an import statement or `import_module` call asks for."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        above = package[: len(package) - node.level + 1] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        is_package = (ROOT.parent / base.replace(".", "/")).is_dir()
        return [f"{base}.{alias.name}" if is_package else base for alias in node.names]
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
        return [ast.unparse(node.args[0]).strip("'\"")]
    return []


def walk(
    node: ast.AST, lazy: bool = False, types: bool = False
) -> Iterator[tuple[ast.AST, bool, bool]]:
    """Every node, whether it runs inside of a function, and whether only a type checker sees it."""
    for child in ast.iter_child_nodes(node):
        yield child, lazy, types
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for_types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        yield from walk(child, lazy or is_function, types or for_types)


def arrows(path: Path) -> Iterator[Arrow]:
    """Every import in a file."""
    module = module_name(path)
    parts = [PACKAGE, *module.split(".")] if module else [PACKAGE]
    package = parts if path.name == "__init__.py" else parts[:-1]
    for node, lazy, types in walk(ast.parse(path.read_text(encoding="utf-8"))):
        for target in targets(node, package):
            yield Arrow(module, target, lazy, types)


ALL = [arrow for path in sorted(ROOT.rglob("*.py")) for arrow in arrows(path)]


def own(arrow: Arrow) -> str | None:
    """The module of ours that is imported."""
    if arrow.target.split(".")[0] != PACKAGE:
        return None
    module = arrow.target.removeprefix(PACKAGE).lstrip(".")
    path = ROOT / module.replace(".", "/")
    return (
        module if path.is_dir() or path.with_suffix(".py").exists() else module.rpartition(".")[0]
    )


def third_party(arrow: Arrow) -> str | None:
    """The distribution that is imported; the parts of azure are told apart."""
    parts = arrow.target.split(".")
    if parts[0] in sys.stdlib_module_names or parts[0] == PACKAGE:
        return None
    return ".".join(parts[:2]) if parts[0] == "azure" else parts[0]


def may_import(arrow: Arrow, what: str) -> bool:
    backend = BACKEND_MODULE.fullmatch(arrow.module)
    if backend and what in BACKENDS[backend[1]]:
        return True
    if arrow.module.startswith("stores.azure_storage.") and what in AZURE_STORAGE:
        return True
    if arrow.module in ARROW_MODULES and what == "pyarrow":
        return True
    if arrow.module in METRICS_MODULES and what == "prometheus_client":
        return True
    if arrow.module in KEDA_MODULES and what in ("google", "grpc"):
        return True
    if arrow.module in TRACING_MODULES and what == "opentelemetry":
        return True
    if arrow.module.startswith(("receive.kafka", "send.kafka")) and what == "confluent_kafka":
        return True
    if WITHOUT_IO.fullmatch(arrow.module) and not re.search(r"\b_a?sync\b", arrow.module):
        return False
    return what in MAY_IMPORT[layer(arrow.module)]


def test_the_parser_sees_the_imports() -> None:
    assert Arrow("records", f"{PACKAGE}._shared.secrets", False, False) in ALL
    assert len({arrow.module for arrow in ALL}) > 40


def test_imports_go_one_way() -> None:
    wrong = []
    for arrow in ALL:
        target = own(arrow)
        if target is not None:
            origin, aim = layer(arrow.module), layer(target)
            if aim != origin and aim not in ARROWS[origin]:
                wrong.append(f"{arrow} ({origin} -> {aim})")
    assert not wrong, "the design allows none of these:\n" + "\n".join(wrong)


def test_the_core_imports_nothing_else_of_the_package() -> None:
    assert {target for room in CORE for target in ARROWS[room]} <= CORE


def test_only_the_public_module_of_a_backend_imports_its_folder() -> None:
    names = [backend.name for backend in backends.BACKENDS]
    folder = re.compile(rf"stores\.({'|'.join(names)})\b")
    wrong = []
    for arrow in ALL:
        target = folder.match(own(arrow) or "")
        if target and not arrow.is_for_types:
            name = target[1]
            inside = rf"(?:aio\.)?{name}|stores\.{name}\b.*|stores\.legacy\.{name}"
            if not re.fullmatch(inside, arrow.module):
                wrong.append(str(arrow))
    assert not wrong, "a backend is reached by entry point:\n" + "\n".join(wrong)
    assert BACKENDS.keys() == set(names) - {"memory"}


def test_the_variants_are_strangers() -> None:
    wrong = []
    for arrow in ALL:
        target = own(arrow) or ""
        is_aio = "_async" in arrow.module or arrow.module.startswith("aio.")
        is_sync = not is_aio and layer(arrow.module) in ("stores", "processing", "public")
        others = r"\b_sync\b" if is_aio else r"\b_async\b|^aio\b" if is_sync else "(?!)"
        if re.search(others, target):
            wrong.append(str(arrow))
    assert not wrong, "one variant imports the other's module:\n" + "\n".join(wrong)


def test_a_driver_is_imported_only_by_its_extras_own_modules() -> None:
    wrong = [
        str(arrow)
        for arrow in ALL
        if (what := third_party(arrow)) and not arrow.is_for_types and not arrow.is_lazy
        if not may_import(arrow, what)
    ]
    assert not wrong, "these may not import that:\n" + "\n".join(wrong)


def is_listed(module: str) -> bool:
    return module in LAZY or module.split(".")[0] in LAZY


def test_nothing_is_imported_inside_of_a_function_without_a_listed_reason() -> None:
    wrong = [str(arrow) for arrow in ALL if arrow.is_lazy and not is_listed(arrow.module)]
    assert not wrong, "these imports belong to the top:\n" + "\n".join(wrong)


def test_every_listed_reason_is_still_needed() -> None:
    needed = {arrow.module for arrow in ALL if arrow.is_lazy}
    needed |= {module.split(".")[0] for module in needed}
    assert needed >= LAZY.keys()


BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if any(name == part or name.startswith(part + ".") for part in {blocked!r}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
"""


def run_blocked(code: str, blocked: list[str] = DRIVERS) -> subprocess.CompletedProcess[str]:
    """Run Python where some packages are not installed."""
    return subprocess.run(
        [sys.executable, "-c", BLOCKED.format(blocked=blocked) + code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT.parent)},
        timeout=LIMIT,
        check=False,
    )


def test_a_program_without_asyncio_does_not_import_it() -> None:
    ended = run_blocked(
        "import eventhub_checkpoints.memory, eventhub_checkpoints.blob", ["asyncio"]
    )
    assert ended.returncode == 0, ended.stderr


OUTCOMES = """
import importlib
for name in {names!r}:
    try:
        module = importlib.import_module(name)
        [getattr(module, each) for each in getattr(module, "__all__", [])]
        print(name, "works")
    except Exception as error:
        print(name, type(error).__name__, error)
"""


def outcomes(names: Iterable[str]) -> dict[str, str]:
    """What comes of importing each module below the package, in turn, without any driver."""
    done = run_blocked(OUTCOMES.format(names=[f"{PACKAGE}{name}" for name in names]))
    lines = [line.removeprefix(PACKAGE).partition(" ") for line in done.stdout.splitlines()]
    assert [name for name, *_ in lines] == [*names], done.stderr
    return {name: outcome for name, _, outcome in lines}


@pytest.mark.waits
def test_what_needs_no_extra_works_without_any() -> None:
    names = ["", ".aio", ".base", ".aio.base", ".memory", ".registry", ".spark", ".receive"]
    names += [".localhub"]
    assert outcomes(names) == dict.fromkeys(names, "works")


@pytest.mark.waits
def test_a_missing_driver_is_one_sentence_that_names_the_extra() -> None:
    extras = {".blob": "blob", ".aio.blob": "blob", ".spark.source": "spark"}
    extras |= dict.fromkeys((".receive.batches", ".arrow", ".aio.arrow"), "arrow")
    extras |= {".receive.kafka.address": "kafka"}
    extras |= {".redis": "redis", ".aio.redis": "redis"}
    extras |= {".aio.table": "table"}
    extras |= {".cassandra": "cassandra", ".aio.cassandra": "cassandra"}
    for name, outcome in outcomes(extras).items():
        assert outcome.startswith("MissingDriverError "), (name, outcome)
        install = f"python -m pip install 'eventhub-checkpoints[{extras[name]}]'"
        assert install in outcome, (name, outcome)


OPENED = """
from eventhub_checkpoints import MissingDriverError, aio, open_store
from eventhub_checkpoints.operations.dead_letters import open_dead_letters
def dead_letters(url):
    with open_dead_letters(url, hub_of=str):
        pass
for url in {urls!r}:
    for opening in {openings}:
        try:
            opening(url)
        except MissingDriverError as error:
            print(error)
        else:
            print("opened")
"""
"""Prints what each missing driver is answered with."""


def asked_for(
    urls: list[str], blocked: list[str] = DRIVERS, openings: str = "open_store, aio.open_store"
) -> list[str]:
    """What each way to open each URL wants installed, by the arguments of pip."""
    done = run_blocked(OPENED.format(urls=urls, openings=f"({openings},)"), blocked)
    assert not done.stderr, done.stderr
    return [line.partition(": python -m pip install ")[2] for line in done.stdout.splitlines()]


@pytest.mark.waits
def test_a_url_is_answered_with_all_that_it_needs_at_once() -> None:
    services = [service for backend in backends.BACKENDS for service in backend.services]
    extras = {
        f"{scheme.form}?sig=x": f"'eventhub-checkpoints[{service.extra}]'"
        for service in services
        if service.extra
        for scheme in service.schemes
    }
    extras |= {
        "postgresql+psycopg://host/db": "'eventhub-checkpoints[postgres]'",
        "postgresql+asyncpg://host/db": "'eventhub-checkpoints[postgres]' asyncpg",
        "mysql+aiomysql://host/db": "'eventhub-checkpoints[mysql]'",
        "MARIADB://host/db": "'eventhub-checkpoints[mysql]'",
    }
    asked = asked_for([*extras])
    assert dict(zip(extras, zip(asked[::2], asked[1::2], strict=True), strict=True)) == {
        # What a sync Table store needs comes with azure-eventhub.
        url: ("" if url.startswith("table+") else extra, extra)
        for url, extra in extras.items()
    }


@pytest.mark.waits
def test_a_table_of_dead_letters_is_answered_in_the_same_way() -> None:
    urls = ["postgresql://host/db", "mysql://host/db"]
    assert asked_for(urls, openings="dead_letters") == [
        "'eventhub-checkpoints[postgres]'",
        "'eventhub-checkpoints[mysql]'",
    ]


@pytest.mark.waits
def test_the_class_of_the_sql_store_names_the_extra_of_each_database() -> None:
    (outcome,) = outcomes([".sql"]).values()
    assert outcome == (
        "MissingDriverError the SQL store needs SQLAlchemy and a driver: python -m pip install "
        "'eventhub-checkpoints[sql]' for SQLite, 'eventhub-checkpoints[postgres]' for PostgreSQL, "
        "'eventhub-checkpoints[mysql]' for MySQL"
    )


@pytest.mark.waits
@pytest.mark.parametrize(
    ("blocked", "extra"),
    [("prometheus_client", "metrics"), ("grpc", "keda"), ("google.protobuf", "keda")],
)
def test_a_missing_driver_is_named_by_the_command_that_needs_it(blocked: str, extra: str) -> None:
    words = ["ehcp", "serve", "--grpc-port", "0"]
    code = f"import sys; sys.argv = {words!r}; from {PACKAGE}.cli import main; main()"
    done = run_blocked(code, [blocked])
    assert f"python -m pip install 'eventhub-checkpoints[cli,{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.waits
def test_a_missing_driver_is_named_by_the_url_that_needs_it() -> None:
    url = "https://account.blob.core.windows.net/container"
    done = run_blocked(f"from {PACKAGE} import open_store; open_store({url!r})")
    assert "eventhub-checkpoints[blob]" in done.stderr


@pytest.mark.waits
@pytest.mark.parametrize(
    "store", ["", ".memory", ".aio.memory", ".blob", ".aio.blob", ".redis", ".aio.redis"]
)
def test_importing_a_store_costs_no_other_backends_driver(store: str) -> None:
    own = BACKENDS.get(store.rpartition(".")[2], set())
    if store.endswith("redis"):
        own = {*own, "opentelemetry"}  # redis-py imports it where it is installed
    others = [name for name in DRIVERS if name not in own]
    code = f"import sys, {PACKAGE}{store}; print([n for n in {others!r} if n in sys.modules])"
    done = run_blocked(code, [])
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
