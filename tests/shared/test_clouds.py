"""The clouds of Azure: hosts, audiences and logins, and the host names in the source code."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventhub_checkpoints._shared.clouds import (
    CHINA,
    CLOUDS,
    GOVERNMENT,
    PUBLIC,
    Cloud,
    cloud_of,
    in_cloud_of,
    is_event_hubs,
    login_options,
    storage_host,
)

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "eventhub_checkpoints"
PAGE = ROOT / "docs/reference/clouds.md"
HOST = re.compile(
    r"(?<![\w@/.-])(?:(?:https?|sb)://)?((?:[A-Za-z0-9-]+\.)+(?:com|net|org|io|cn|us|de|eu|gov))(?![\w.(-])"
)
"""A host name, or a domain, that is written out. Names of modules and settings end otherwise."""


@pytest.mark.parametrize(
    ("host", "cloud"),
    [
        ("acct.blob.core.windows.net", PUBLIC),
        ("acct.table.core.windows.net", PUBLIC),
        ("acct.z01.blob.storage.azure.net", PUBLIC),
        ("acct.z99.table.storage.azure.net", PUBLIC),
        ("ns.servicebus.windows.net:5671", PUBLIC),
        ("name.postgres.database.azure.com", PUBLIC),
        ("name.redis.cache.windows.net", PUBLIC),
        ("name.region.redis.azure.net:10000", PUBLIC),
        ("acct.table.core.usgovcloudapi.net", GOVERNMENT),
        ("NAME.MySQL.database.UsGovCloudAPI.net.", GOVERNMENT),
        ("name.private.postgres.database.usgovcloudapi.net:5432", GOVERNMENT),
        ("ns.servicebus.chinacloudapi.cn", CHINA),
        ("name.redis.cache.chinacloudapi.cn:6380", CHINA),
        ("database.internal", None),
        ("10.0.0.4:5432", None),
        ("::1", None),
        ("", None),
        ("mywindows.net", None),
        ("windows.net.example", None),
    ],
)
def test_the_domain_of_a_host_names_its_cloud(host: str, cloud: Cloud | None) -> None:
    assert cloud_of(host) is cloud


@pytest.mark.parametrize("service", ["blob", "table"])
@pytest.mark.parametrize(
    ("host", "account"),
    [
        ("orders.{}.core.windows.net", "orders"),
        ("orders.{}.core.usgovcloudapi.net", "orders"),
        ("orders.{}.core.chinacloudapi.cn", "orders"),
        ("orders.{}.core.an.airgapped.gov", "orders"),
        ("orders.z01.{}.storage.azure.net", "orders"),
        ("orders.z1.{}.storage.azure.net", None),
        ("orders.other.core.windows.net", None),
        ("orders.z01.{}.core.windows.net", None),
        ("{}.core.windows.net", None),
        ("orders-secondary.{}.core.windows.net", None),
    ],
)
def test_the_host_of_a_storage_account_names_it(
    service: str, host: str, account: str | None
) -> None:
    match = re.fullmatch(storage_host(service), host.format(service))
    assert (match and match[1]) == account


@pytest.mark.parametrize("cloud", CLOUDS, ids=lambda cloud: cloud.name)
def test_a_namespace_of_event_hubs_is_known_in_every_cloud(cloud: Cloud) -> None:
    assert is_event_hubs(f"NS.ServiceBus.{cloud.domain}:9093")
    assert not is_event_hubs(f"servicebus.{cloud.domain}")
    assert not is_event_hubs(f"acct.blob.core.{cloud.domain}")


def test_an_example_is_shown_in_the_cloud_of_a_host() -> None:
    form = "https://ACCOUNT.blob.core.windows.net"
    assert in_cloud_of("a.table.core.chinacloudapi.cn", form).endswith("core.chinacloudapi.cn")
    assert in_cloud_of("a.example", form) == in_cloud_of("a.table.core.windows.net", form) == form


@pytest.mark.parametrize(
    ("host", "options"),
    [
        ("name.postgres.database.azure.com", {}),
        ("database.internal", {}),
        ("acct.blob.core.usgovcloudapi.net", {"authority": "login.microsoftonline.us"}),
        ("acct.blob.core.chinacloudapi.cn", {"authority": "login.chinacloudapi.cn"}),
    ],
)
def test_a_login_is_made_in_the_cloud_of_the_host(
    host: str, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_AUTHORITY_HOST", raising=False)
    assert login_options(host) == options
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", "login.example")
    assert login_options(host) == {}


def rows(heading: str) -> Iterator[list[str]]:
    """The rows of the table below a heading of the page, as cells."""
    section = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    for line in lines[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def names(cell: str) -> tuple[str, ...]:
    return tuple(re.findall("`([^`]+)`", cell))


def test_the_page_has_the_table_of_clouds() -> None:
    documented = [
        (title, names(name), names(domain), names(others), names(login), names(audience))
        for title, name, domain, others, login, audience in rows("Clouds")
    ]
    assert documented == [
        (
            cloud.title,
            (cloud.name,),
            (cloud.domain,),
            cloud.other_domains,
            (cloud.login_host,),
            (cloud.database_audience,),
        )
        for cloud in CLOUDS
    ]


def written() -> set[str]:
    """Every host name in the source code."""
    found: set[str] = set()
    for path in SOURCE.rglob("*"):
        if path.suffix not in (".pyc", ".png") and path.is_file():
            found |= set(HOST.findall(path.read_text("utf-8")))
    return found


def test_the_page_says_of_every_host_name_in_the_source_what_it_does_in_the_other_clouds() -> None:
    documented = {name: cells[2] for cells in rows("Host names in this package")
                  for name in names(cells[0])}  # fmt: skip
    assert all(documented.values())
    assert sorted(written() ^ documented.keys()) == []


def test_no_other_module_names_a_domain_of_a_cloud_that_is_not_in_an_example() -> None:
    """A second list of domains would be forgotten when a cloud is added."""
    domains = {domain for cloud in CLOUDS for domain in cloud.domains}
    named = {name for name in written() if any(name.endswith(f".{each}") for each in domains)}
    examples = {name for name in named if name.partition(".")[0].isupper()}
    audiences = {"eventhubs.azure.net", "redis.azure.com", "storage.azure.com"}
    logins = {cloud.login_host for cloud in CLOUDS}
    assert named - examples - audiences - logins == {"localhub.servicebus.windows.net"}
    for path in SOURCE.rglob("*.py"):
        if path.name != "clouds.py":
            bare = set(HOST.findall(path.read_text("utf-8"))) & domains
            assert bare == set(), path
