"""Certificates and proxies of connections, from the arguments of a driver's client."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.request import getproxies

CONNECT_SECONDS = 10.0
REST_ARGUMENTS = frozenset(
    {
        *("connection_verify", "connection_cert", "proxies", "use_env_settings"),
        *("connection_timeout", "read_timeout", "secondary_hostname"),
    }
)
"""Arguments of a driver's client that requests without the driver honour. The time limits of the
store replace the two timeouts, and a request is never repeated at the secondary endpoint.
"""


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """How to connect to a server.

    Attributes:
        server: URL of the server.
        proxy: URL of the proxy; None without one.
        authority: file or directory of the certificates that are trusted; True for those that the
            HTTP library trusts, False if the server's certificate is not verified.
        certificate: files of the client's certificate and its key.
        use_environment: whether the environment may name certificates.
    """

    server: str
    proxy: str | None = field(repr=False)
    authority: str | bool
    certificate: tuple[str, ...]
    use_environment: bool

    @classmethod
    def of(cls, arguments: Mapping[str, Any], url: str) -> Self | None:
        """Return the options in the arguments of a driver's client; None if it has others.

        Args:
            arguments: of a driver's client.
            url: of a request.
        """
        proxies = arguments.get("proxies") or {}
        if not arguments.keys() <= REST_ARGUMENTS or not proxies.keys() <= {"http", "https"}:
            return None
        use_environment = arguments.get("use_env_settings", True)
        proxy = proxies.get(url.partition(":")[0])
        if use_environment and not proxy:
            proxy = proxy_of_environment(url)
        certificate = arguments.get("connection_cert") or ()
        return cls(
            "/".join(url.split("/", 3)[:3]),
            proxy,
            arguments.get("connection_verify", True),
            (certificate,) if isinstance(certificate, str) else tuple(certificate),
            use_environment,
        )


def proxy_of_environment(url: str) -> str | None:
    """Return the proxy that the environment names for a URL; None if it names none."""
    if not getproxies():
        return None
    from requests.utils import get_environ_proxies, select_proxy

    return select_proxy(url, get_environ_proxies(url))
