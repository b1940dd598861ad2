"""What is written elsewhere of the backends agrees with their table."""

import re
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from eventhub_checkpoints.stores.backends import (
    BACKENDS,
    SCHEMES,
    UNSUPPORTED,
    Backend,
    Service,
    scheme_of,
)
from eventhub_checkpoints.stores.sql.url import DIALECTS
from eventhub_checkpoints.stores.suggestions import ALIASES

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SERVICES = [(backend, service) for backend in BACKENDS for service in backend.services]

by_backend = pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
by_service = pytest.mark.parametrize(
    ("backend", "service"), SERVICES, ids=[service.title for _, service in SERVICES]
)


@pytest.mark.parametrize(
    ("group", "package"),
    [
        ("eventhub_checkpoints.stores", "eventhub_checkpoints"),
        ("eventhub_checkpoints.aio_stores", "eventhub_checkpoints.aio"),
    ],
)
def test_every_scheme_is_an_entry_point_of_both_variants(group: str, package: str) -> None:
    assert PROJECT["entry-points"][group] == {
        scheme: f"{package}.{backend.name}:{backend.store}.from_url"
        for backend in BACKENDS
        for scheme in backend.schemes
    }


@by_backend
@pytest.mark.parametrize("package", ["eventhub_checkpoints", "eventhub_checkpoints.aio"])
def test_a_backend_is_a_folder_and_a_public_module(backend: Backend, package: str) -> None:
    assert (ROOT / "src/eventhub_checkpoints/stores" / backend.name / "__init__.py").exists()
    assert callable(getattr(import_module(f"{package}.{backend.name}"), backend.store).from_url)


@by_service
def test_the_extra_of_a_service_is_one_of_all(backend: Backend, service: Service) -> None:
    if service.extra:
        extras = PROJECT["optional-dependencies"]
        assert service.extra in extras
        (every,) = extras["all"]
        assert service.extra in re.split(r"[\[\],]", every)
    else:
        assert backend.name == "memory"


@by_service
@pytest.mark.parametrize("page", ["README.md", "docs/how-to/choose-a-store.md"])
def test_the_tables_of_stores_have_the_urls_and_the_extra_of_each_service(
    backend: Backend, service: Service, page: str
) -> None:
    del backend
    extra = f"`{service.extra}`" if service.extra else "none"
    rows = [row for row in (ROOT / page).read_text().splitlines() if f"| {extra} |" in row]
    # The README has no emulator.
    shown = [scheme.form.partition(":")[0] for scheme in service.schemes if scheme.name != "http"]
    assert any(all(f"`{scheme}:" in row for scheme in shown) for row in rows)
    if page == "docs/how-to/choose-a-store.md":
        assert any(all(scheme.form in row for scheme in service.schemes) for row in rows)


@by_backend
def test_the_page_on_configurations_has_the_type_and_the_keys(backend: Backend) -> None:
    page = (ROOT / "docs/reference/configuration.md").read_text()
    assert f'`"{backend.type_name}"`' in page
    assert [name for name in (*backend.keys, *backend.settings) if f"`{name}`" not in page] == []


def test_every_database_of_the_sql_store_has_a_dialect() -> None:
    (sql,) = (backend for backend in BACKENDS if backend.name == "sql")
    assert list(DIALECTS) == list(sql.schemes)
    assert all(dialect.service == sql.service(name) for name, dialect in DIALECTS.items())


def test_the_extra_of_a_database_installs_the_first_driver_of_both_variants() -> None:
    """The others, which a URL may name, are installed by the user."""
    extras = PROJECT["optional-dependencies"]
    for dialect in DIALECTS.values():
        first = {names[0] for names in dialect.drivers.values()}
        installed = " ".join(extras[dialect.service.extra])
        assert [name for name in first - {"pysqlite"} if name not in installed] == []
        every = {name for names in dialect.drivers.values() for name in names}
        assert every - first == {*dialect.service.other_drivers}


def test_no_scheme_has_two_meanings() -> None:
    names = [name for backend in BACKENDS for name in backend.schemes]
    aliases = [alias for scheme in SCHEMES.values() for alias in scheme.aliases]
    ports = [scheme.port for scheme in SCHEMES.values() if scheme.port]
    others = [*names, *aliases, *UNSUPPORTED]
    assert len(set(others)) == len(others)
    assert len(set(ports)) == len(ports)
    assert set(ALIASES.values()) <= {scheme.form for scheme in SCHEMES.values()}
    assert all(scheme_of(scheme.form) == name for name, scheme in SCHEMES.items())


@pytest.mark.parametrize(
    ("url", "scheme"),
    [
        ("POSTGRESQL+asyncpg://host/db", "postgresql"),
        ("table+https://account/table", "table"),
        ("memory:", "memory"),
        ("checkpoints.db", ""),
    ],
)
def test_a_scheme_names_the_service(url: str, scheme: str) -> None:
    assert scheme_of(url) == scheme
