"""Stores by URL: every form, every way to be wrong, and schemes that others add."""

import asyncio
import importlib.metadata
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from eventhub_checkpoints import ConfigurationError, MemoryCheckpointStore, aio, open_store
from eventhub_checkpoints.aio.blob import BlobCheckpointStore as AioBlobCheckpointStore
from eventhub_checkpoints.blob import BlobCheckpointStore
from eventhub_checkpoints.registry import shown

SECRET = "c2VjcmV0"
BLOB_URL = f"https://account.blob.core.windows.net/container?sv=2020&sig={SECRET}"
SCOPE = ("ns.servicebus.windows.net", "orders", "$Default")
CHECKPOINT = dict(
    zip(("fully_qualified_namespace", "eventhub_name", "consumer_group"), SCOPE, strict=True)
) | {"partition_id": "0", "offset": "1", "sequence_number": 1}

Open = Callable[..., Any]
BOTH: list[Any] = [open_store, aio.open_store]
CONSUL = {
    "eventhub_checkpoints.stores": "consul = consul_store:Store",
    "eventhub_checkpoints.aio_stores": "consul = consul_store:AioStore",
}
"""The entry points of a distribution, by group."""


def a_factory(**settings: Any) -> MemoryCheckpointStore:
    return MemoryCheckpointStore(**settings)


class Nested:
    """A factory may be an attribute of an attribute."""

    factory = staticmethod(a_factory)


@pytest.fixture
def factories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An importable module with factories; gives its name."""
    name = "factories_of_a_test"
    source = Path(__file__).read_text(encoding="utf-8")
    start = source.index("def a_factory")
    (tmp_path / f"{name}.py").write_text(
        "from typing import Any\n"
        "from eventhub_checkpoints import MemoryCheckpointStore\n"
        + source[start : source.index("@pytest.fixture")]
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, name)
    return name


def install(folder: Path, name: str, points: Mapping[str, str]) -> None:
    """Add the metadata of a distribution, with an entry point in each group."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"[{group}]\n{point}\n" for group, point in points.items()]
    (info / "entry_points.txt").write_text("".join(lines))
    importlib.invalidate_caches()


@pytest.fixture
def consul(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed distribution of somebody else, with a scheme for each variant."""
    install(tmp_path, "consul-store", CONSUL)
    (tmp_path / "consul_store.py").write_text(
        "from eventhub_checkpoints import MemoryCheckpointStore, aio\n"
        "class Store(MemoryCheckpointStore):\n"
        "    def __init__(self, url, *, credential=None, **settings):\n"
        "        super().__init__(**settings)\n"
        "        self.opened = url, credential, settings\n"
        "class AioStore(aio.MemoryCheckpointStore):\n"
        "    def __init__(self, url, *, credential=None, **settings):\n"
        "        super().__init__(**settings)\n"
        "        self.opened = url, credential, settings\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "consul_store", None)
    monkeypatch.delitem(sys.modules, "consul_store")


def test_memory_is_rows_of_its_own() -> None:
    with open_store("memory:") as first, open_store("memory:") as second:
        first.update_checkpoint(CHECKPOINT)
        assert len(first.list_checkpoints(*SCOPE)) == 1
        assert second.list_checkpoints(*SCOPE) == []


def test_memory_with_a_name_is_shared_by_both_variants() -> None:
    store = open_store("memory:shared by a test")
    store.update_checkpoint(CHECKPOINT)

    async def listed() -> list[dict[str, Any]]:
        async with aio.open_store("memory:shared by a test") as other:
            return await other.list_checkpoints(*SCOPE)

    assert asyncio.run(listed()) == store.list_checkpoints(*SCOPE)


def test_a_scheme_is_the_same_in_capitals() -> None:
    assert isinstance(open_store("MEMORY:"), MemoryCheckpointStore)


def test_a_container_on_azure_is_a_blob_store() -> None:
    with open_store(BLOB_URL) as store:
        assert isinstance(store, BlobCheckpointStore)


def test_a_container_on_an_emulator_is_a_blob_store_of_either_variant() -> None:
    url = "http://127.0.0.1:10000/devstoreaccount1/container"
    with open_store(url) as store:
        assert isinstance(store, BlobCheckpointStore)

    async def opened() -> object:
        async with aio.open_store(url) as store:
            return store

    assert isinstance(asyncio.run(opened()), AioBlobCheckpointStore)


@pytest.mark.parametrize("path", ["a_factory", "Nested.factory"])
def test_a_factory_is_called_with_the_settings(factories: str, path: str) -> None:
    store = open_store(f"{factories}:{path}", max_concurrency=3)
    assert store.settings.max_concurrency == 3


def test_a_module_in_a_package_is_a_factorys_home() -> None:
    store = open_store("eventhub_checkpoints.memory:MemoryCheckpointStore")
    assert isinstance(store, MemoryCheckpointStore)


@pytest.mark.parametrize("open_it", BOTH)
def test_settings_reach_the_store(open_it: Open) -> None:
    assert open_it("memory:", write_timeout=2.5).settings.write_timeout == 2.5


@pytest.mark.parametrize("open_it", BOTH)
def test_a_bad_setting_is_refused_where_the_store_is_opened(open_it: Open) -> None:
    with pytest.raises(ConfigurationError, match=r"^max_concurrency is 0"):
        open_it("memory:", max_concurrency=0)


@pytest.mark.parametrize("open_it", BOTH)
def test_an_unknown_setting_is_refused_with_the_known_ones(open_it: Open) -> None:
    said = "^operation_timout is not a setting of MemoryCheckpointStore; expected one of operation_"
    with pytest.raises(ConfigurationError, match=said):
        open_it("memory:", operation_timout=5)


@pytest.mark.parametrize("open_it", BOTH)
def test_a_path_is_answered_with_the_url_of_the_file(open_it: Open) -> None:
    with pytest.raises(ConfigurationError, match=r"did you mean sqlite:///rows.db\?$"):
        open_it(Path("rows.db"))


@pytest.mark.parametrize("open_it", BOTH)
@pytest.mark.parametrize("url", [None, "", 5, SECRET.encode()])
def test_a_url_that_is_no_text_asks_for_the_variable(open_it: Open, url: Any) -> None:
    said = "^the store URL is .*; expected a string such as .*environment variable set"
    with pytest.raises(ConfigurationError, match=said) as failure:
        open_it(url)
    assert SECRET not in str(failure.value)


@pytest.mark.parametrize("open_it", BOTH)
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("os:getcwd", "os:getcwd returned str; expected a checkpoint store"),
        ("os:sep", "os:sep is not callable"),
        ("os.path:join", "os.path:join could not be called without arguments: "),
    ],
)
def test_a_factory_that_makes_no_store_is_refused(open_it: Open, url: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as failure:
        open_it(url)
    assert said in str(failure.value)


def test_a_setting_that_a_factory_does_not_take_is_said() -> None:
    said = "os:getcwd could not be called with write_timeout: "
    with pytest.raises(ConfigurationError, match=said) as failure:
        open_store("os:getcwd", write_timeout=1)
    assert isinstance(failure.value.__cause__, TypeError)


def test_an_error_inside_of_a_factory_is_left_as_it_is() -> None:
    with pytest.raises(TypeError, match="NoneType"):
        open_store("textwrap:dedent", text=None)


def test_a_store_of_the_other_variant_names_the_other_function() -> None:
    place = "memory:MemoryCheckpointStore"
    with pytest.raises(
        ConfigurationError, match=r"async store.*eventhub_checkpoints\.aio\.open_st"
    ):
        open_store(f"eventhub_checkpoints.aio.{place}")
    with pytest.raises(ConfigurationError, match=r"sync store.*eventhub_checkpoints\.open_store"):
        aio.open_store(f"eventhub_checkpoints.{place}")


@pytest.mark.parametrize("open_it", BOTH)
@pytest.mark.parametrize("url", ["gopher://host/x", ":", "no-module:factory"])
def test_an_unknown_scheme_lists_the_known_ones(open_it: Open, url: str) -> None:
    with pytest.raises(ConfigurationError) as failure:
        open_it(url)
    assert "expected one of cassandra:, http:, https:, mariadb:, " in str(failure.value)
    assert str(failure.value).endswith(", or package.module:factory")


@pytest.mark.parametrize("open_it", BOTH)
@pytest.mark.parametrize(
    ("url", "nearest"),
    [
        (f"postgres://me:{SECRET}@host/db", "postgresql"),
        ("postgesql://host/db", "postgresql"),
        ("redis-s://host:6379", "rediss"),
        ("sqlite3:///file.db", "sqlite"),
        ("casandra://host/keyspace", "cassandra"),
        ("memory", "memory"),
        ("https", "https"),
    ],
)
def test_a_scheme_with_a_typing_error_is_answered_with_the_nearest_first(
    open_it: Open, url: str, nearest: str
) -> None:
    with pytest.raises(ConfigurationError) as failure:
        open_it(url)
    assert f"xpected one of {nearest}:, " in str(failure.value)
    assert SECRET not in str(failure.value)


@pytest.mark.parametrize("open_it", BOTH)
@pytest.mark.parametrize(
    ("url", "meant"),
    [
        (f"postgres://me:{SECRET}@host/db", "postgresql://USER:PASSWORD@HOST/DATABASE"),
        ("data/checkpoints.db", "sqlite:///data/checkpoints.db"),
        ("/data/checkpoints.db", "sqlite:////data/checkpoints.db"),
        ("localhost:6379", "redis://HOST:6379/0"),
        ("postgres", "postgresql://USER:PASSWORD@HOST/DATABASE"),
        ("file:checkpoints.db", "sqlite:///checkpoints.db"),
        ("C:/data/checkpoints.db", "sqlite:///C:/data/checkpoints.db"),
        ("a.blob.core.windows.net/c", "https://ACCOUNT.blob.core.windows.net/CONTAINER"),
    ],
)
def test_a_url_of_another_program_is_answered_with_what_was_meant(
    open_it: Open, url: str, meant: str
) -> None:
    with pytest.raises(ConfigurationError) as failure:
        open_it(url)
    assert f" names no store; did you mean {meant}? Expected one of " in str(failure.value)
    assert str(failure.value).endswith(", or package.module:factory")
    assert "+" not in str(failure.value)
    assert SECRET not in str(failure.value)


@pytest.mark.parametrize("open_it", BOTH)
def test_a_database_without_a_store_is_told_without_the_name_of_a_similar_one(
    open_it: Open,
) -> None:
    said = (
        "^'mssql://host/db' names no store; there is no store for SQL Server, but a custom store "
        r"can be written for it: docs/how-to/custom-store\.md\. Expected one of "
    )
    with pytest.raises(ConfigurationError, match=said) as failure:
        open_it(f"mssql://me:{SECRET}@host/db")
    assert SECRET not in str(failure.value)


@pytest.mark.parametrize("open_it", BOTH)
def test_a_driver_that_the_store_does_not_have_is_answered_by_the_store(open_it: Open) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be used by the .*; it takes postgres"):
        open_it("postgresql+psycopgg://host/db")


@pytest.mark.parametrize("open_it", BOTH)
@pytest.mark.parametrize(
    "url", ["no_such_module:factory", "no.such.module:factory", "json:no_such_factory"]
)
def test_a_factory_that_cannot_be_imported_says_why(open_it: Open, url: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be imported") as failure:
        open_it(url)
    assert url in str(failure.value)
    assert isinstance(failure.value.__cause__, ImportError | AttributeError)


@pytest.mark.parametrize(
    "url",
    [
        f"gopher://host/x?sig={SECRET}",
        f"gopher://user:{SECRET}@host/x",
        f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={SECRET}",
        f"AccountKey={SECRET};BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1",
        f"BlobEndpoint=https://a.blob.core.windows.net;SharedAccessSignature=sig={SECRET}",
        f"no_such_module:factory?sig={SECRET}",
        f"json:factory?sig={SECRET}",
        f"sftp://me:{SECRET}?@host/path",
        f"sftp://me:a@{SECRET}=@host/path",
        f"sftp:me:{SECRET}@host/path",
    ],
)
@pytest.mark.parametrize("open_it", BOTH)
def test_a_secret_in_a_url_is_never_shown(open_it: Open, url: str) -> None:
    with pytest.raises(ConfigurationError) as failure:
        open_it(url)
    assert SECRET not in str(failure.value)
    assert SECRET not in shown(url)


def test_a_secret_is_not_in_the_stores_own_text() -> None:
    with open_store(BLOB_URL) as store:
        assert SECRET not in repr(store)
        assert SECRET not in str(vars(store))


@pytest.mark.usefixtures("consul")
@pytest.mark.parametrize("open_it", BOTH)
def test_another_distribution_adds_a_scheme(open_it: Open) -> None:
    store = open_it("consul://host/prefix", credential="token", write_timeout=1)
    assert store.opened == ("consul://host/prefix", "token", {"write_timeout": 1})


@pytest.mark.usefixtures("consul")
@pytest.mark.parametrize("open_it", BOTH)
def test_a_transport_behind_a_plus_leaves_the_service(open_it: Open) -> None:
    assert open_it("consul+https://host/prefix").opened[0] == "consul+https://host/prefix"


@pytest.mark.usefixtures("consul")
@pytest.mark.parametrize("open_it", BOTH)
def test_an_entry_point_for_the_whole_scheme_is_preferred(open_it: Open, tmp_path: Path) -> None:
    install(tmp_path, "other", dict.fromkeys(CONSUL, "consul+https = other_store:Store"))
    with pytest.raises(ModuleNotFoundError, match="other_store"):
        open_it("consul+https://host/prefix")


@pytest.mark.usefixtures("consul")
@pytest.mark.parametrize("open_it", BOTH)
@pytest.mark.parametrize("scheme", ["consul", "redis"])
def test_a_scheme_of_two_packages_is_refused(open_it: Open, tmp_path: Path, scheme: str) -> None:
    install(tmp_path, "other", dict.fromkeys(CONSUL, f"{scheme} = other_store:Store"))
    said = rf"several packages add the scheme {scheme}: .*other \(other_store:Store\).* uninstall"
    with pytest.raises(ConfigurationError, match=said):
        open_it(f"{scheme}://host")
    assert open_it("memory:") is not None


@pytest.mark.usefixtures("consul")
@pytest.mark.parametrize("open_it", BOTH)
def test_two_packages_may_add_the_same_factory(open_it: Open, tmp_path: Path) -> None:
    install(tmp_path, "other", CONSUL)
    assert open_it("consul://host").opened[0] == "consul://host"


@pytest.mark.parametrize("open_it", BOTH)
def test_entry_points_are_read_once_until_a_package_is_installed(
    open_it: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def entry_points(*, group: str) -> Any:
        read.append(group)
        return real(group=group)

    real = importlib.metadata.entry_points
    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    monkeypatch.syspath_prepend(tmp_path)
    os.utime(tmp_path, (0, 0))
    for _ in range(3):
        open_it("memory:")
    assert len(read) == 1
    install(tmp_path, "consul-store", CONSUL)
    with pytest.raises(ModuleNotFoundError, match="consul_store"):
        open_it("consul://host")
    assert len(read) == 2


@pytest.mark.usefixtures("consul")
@pytest.mark.parametrize("open_it", BOTH)
def test_an_added_scheme_is_listed_among_the_known(open_it: Open) -> None:
    with pytest.raises(ConfigurationError, match="expected one of cassandra:, consul:, http:, "):
        open_it("gopher://host/x")


@pytest.mark.parametrize("open_it", BOTH)
def test_a_store_in_the_place_of_its_url_is_told(open_it: Open) -> None:
    with pytest.raises(ConfigurationError, match=r"MemoryCheckpointStore; .*store already\?$"):
        open_it(MemoryCheckpointStore())
