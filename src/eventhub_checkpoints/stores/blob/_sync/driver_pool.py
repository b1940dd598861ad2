# Not derived: edit this file and its async twin together.
"""Transport of a synchronous client of azure-storage-blob."""

from typing import Any

from azure.core.pipeline.transport import RequestsTransport
from requests import Session
from requests.adapters import HTTPAdapter
from urllib3.util import Timeout

from eventhub_checkpoints.stores.azure_storage._sync.http import SAS_HEADER, SAS_POOLS


class Adapter(HTTPAdapter):
    """Sends requests with one time limit each, and does not log the signature of a SAS.

    The limit is kept by deducting the time spent connecting from the read timeout. The signature
    passes urllib3's pools as a header, because they log URLs.

    Source: urllib3, `util/timeout.py`, `Timeout.read_timeout`.
    """

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Create the pools."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = SAS_POOLS

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        """Return the pools of a proxy."""
        manager = super().proxy_manager_for(*args, **kwargs)
        manager.pool_classes_by_scheme = SAS_POOLS
        return manager

    def request_url(self, *args: Any, **kwargs: Any) -> str:
        """Return the URL for the pool, without a signature."""
        return without_signature(super().request_url(*args, **kwargs))[0]

    def add_headers(self, request: Any, **_: Any) -> None:
        """Pass the signature on to the connection."""
        if signature := without_signature(request.url)[1]:
            request.headers[SAS_HEADER] = signature

    def send(self, *args: Any, **kwargs: Any) -> Any:
        """Send a request whose timeout is the driver's pair of connect and read timeouts."""
        connect, read = kwargs["timeout"]
        kwargs["timeout"] = Timeout(connect=connect, read=read, total=read)
        return super().send(*args, **kwargs)


def without_signature(url: str) -> tuple[str, str]:
    """Return a URL without the signature of a SAS, and the signature to be added to its end."""
    resource, mark, query = url.partition("?")
    pairs = query.split("&")
    signatures = [f"&{pair}" for pair in pairs if pair.startswith("sig=")]
    others = "&".join(pair for pair in pairs if not pair.startswith("sig="))
    return f"{resource}{mark}{others}", "".join(signatures)


class OneLookSession(Session):
    """Reads the environment once per server, for proxies and trusted certificates.

    A plain session examines all variables at every request, which is a tenth of the cost of a
    request. It also looks for a `.netrc`, whose password would then replace the signature.

    Source: requests 2.34, `sessions.py`, `Session.request` and `Session.prepare_request`.
    """

    def __init__(self, trust_env: bool) -> None:
        super().__init__()
        self.trust_env = False
        self._plain = Session()
        self._plain.trust_env = trust_env
        self._settings: dict[str, dict[str, Any]] = {}

    def merge_environment_settings(
        self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any
    ) -> dict[str, Any]:
        """Return the settings of the first request to this server; they apply to all."""
        server = "/".join(url.split("/", 3)[:3])
        if server not in self._settings:
            self._settings[server] = self._plain.merge_environment_settings(
                url, proxies, stream, verify, cert
            )
        return {**self._settings[server], "stream": stream}


def pooled(size: int, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return client arguments for `size` concurrent connections; the driver's own pool keeps 10.

    The session is created here, before the first thread: the transport would create one per
    thread. The other arguments also configure the transport, for example trusted certificates.
    """
    session = OneLookSession(arguments.get("use_env_settings", True))
    for scheme in ("https://", "http://"):
        session.mount(scheme, Adapter(pool_maxsize=size))
    return {"transport": RequestsTransport(session=session, **arguments), **arguments}
