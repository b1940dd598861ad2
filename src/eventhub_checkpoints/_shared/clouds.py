"""The clouds of Azure, by the domains of their hosts, and what differs between them.

This is the only list of domains: audiences, login hosts and the recognition of a service's hosts
follow it. A host outside of all these domains, such as an alias of a private network or one of an
air-gapped cloud, is treated as one of the public cloud, unless a setting says otherwise.

Source: azure-cli, `azure.cli.core.cloud`, whose values `az cloud show` prints; azure-identity 1.27,
`AzureAuthorityHosts`. Azure Germany (`cloudapi.de`) was closed in 2021.
"""

import os
import re
from dataclasses import dataclass

AUTHORITY = "AZURE_AUTHORITY_HOST"
"""Variable from which azure-identity takes the host to log in at."""


@dataclass(frozen=True, slots=True)
class Cloud:
    """A cloud with its own domains and its own Entra.

    Attributes:
        name: as `az cloud set --name` takes it.
        title: its name in documentation.
        domain: end of the host names of storage accounts and event hubs.
        other_domains: ends of the host names of its other services.
        login_host: where tokens are requested.
    """

    name: str
    title: str
    domain: str
    other_domains: tuple[str, ...]
    login_host: str

    @property
    def database_audience(self) -> str:
        """Return the audience of tokens for its PostgreSQL and MySQL servers."""
        return f"https://ossrdbms-aad.database.{self.domain}"

    @property
    def domains(self) -> tuple[str, ...]:
        """Return the ends of all its host names."""
        return (self.domain, *self.other_domains)


PUBLIC = Cloud(
    "AzureCloud", "Azure", "windows.net", ("azure.com", "azure.net"), "login.microsoftonline.com"
)
GOVERNMENT = Cloud(
    "AzureUSGovernment",
    "Azure Government",
    "usgovcloudapi.net",
    ("azure.us",),
    "login.microsoftonline.us",
)
CHINA = Cloud(
    "AzureChinaCloud",
    "Azure in China",
    "chinacloudapi.cn",
    ("azure.cn",),
    "login.chinacloudapi.cn",
)
CLOUDS = (PUBLIC, GOVERNMENT, CHINA)


def cloud_of(host: str) -> Cloud | None:
    """Return the cloud of a host, which may have a port; None if its domain is not known."""
    name = f".{bare(host)}"
    return next(
        (each for each in CLOUDS if any(name.endswith(f".{end}") for end in each.domains)), None
    )


def bare(host: str) -> str:
    """Return a host name in lower case, without port and without the dot of a root."""
    return re.sub(r":\d+$", "", host.lower()).removesuffix(".")


def in_cloud_of(host: str, form: str) -> str:
    """Return an address of the public cloud, such as one in a message, in the cloud of a host."""
    return form.replace(PUBLIC.domain, (cloud_of(host) or PUBLIC).domain)


def login_options(host: str) -> dict[str, str]:
    """Return the argument of a credential of azure-identity that logs in in the cloud of a host.

    Empty if azure-identity's own default is right: in the public cloud, and where the environment
    names a host to log in at.
    """
    cloud = cloud_of(host)
    if cloud is None or cloud is PUBLIC or os.environ.get(AUTHORITY):
        return {}
    return {"authority": cloud.login_host}


def is_event_hubs(host: str) -> bool:
    """Return whether a host is a namespace of Event Hubs, in any cloud."""
    return any(bare(host).endswith(f".servicebus.{each.domain}") for each in CLOUDS)


def storage_host(service: str) -> str:
    """Return the pattern of a storage account's host for a service such as `blob` or `table`.

    Its group 1 is the account's name. It matches the endpoints of any cloud, known or not:
    `ACCOUNT.blob.core.DOMAIN`, and in an Azure DNS zone `ACCOUNT.zNN.blob.storage.azure.net`.

    Source: Azure Storage, "Storage account overview", "Storage account endpoints".
    """
    return rf"([a-z0-9]+)\.(?:{service}\.core|z\d\d\.{service}\.storage)\.[a-z.]+"
