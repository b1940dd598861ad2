# Not derived: edit this file and its async twin together.
"""The connections of a synchronous blob client."""

from inspect import iscoroutinefunction
from typing import Any

from azure.core.pipeline.transport import RequestsTransport
from requests import Session
from requests.adapters import HTTPAdapter
from urllib3.util import Timeout

from eventhub_checkpoints._shared.settings import kind_of
from eventhub_checkpoints.errors import ConfigurationError


def check_credential(credential: object) -> None:
    """Refuse an asynchronous credential: the driver would take its coroutine for a token.

    Raises:
        ConfigurationError: it is one.
    """
    if iscoroutinefunction(getattr(credential, "get_token", None)):
        raise ConfigurationError(
            f"credential is a {kind_of(credential)}, which is asynchronous; expected one of "
            "azure.identity, not of azure.identity.aio"
        )


class OneBoundAdapter(HTTPAdapter):
    """Counts the time that connecting took off the time for the answer; a request has one bound.

    Source: urllib3, `util/timeout.py`, `Timeout.read_timeout`.
    """

    def send(self, *args: Any, **kwargs: Any) -> Any:
        """Send a request whose time-out is the driver's pair for connecting and reading."""
        connect, read = kwargs["timeout"]
        kwargs["timeout"] = Timeout(connect=connect, read=read, total=read)
        return super().send(*args, **kwargs)


class OneLookSession(Session):
    """Looks at the environment once for each server: for proxies and for trusted certificates.

    A plain session walks through all variables at every request, a tenth of what the request
    costs. It also looks for a `.netrc`, whose password would then take the signature's place.

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
        """What the first request to this server was given; one client gives all the same."""
        server = "/".join(url.split("/", 3)[:3])
        if server not in self._settings:
            self._settings[server] = self._plain.merge_environment_settings(
                url, proxies, stream, verify, cert
            )
        return {**self._settings[server], "stream": stream}


def pooled(size: int, arguments: dict[str, Any]) -> dict[str, Any]:
    """Client arguments for so many connections at once; the driver's own pool keeps 10.

    The session is made here, before the first thread: the transport would make one a thread.
    The other arguments tell the transport too, for example whose certificates are trusted.
    """
    session = OneLookSession(arguments.get("use_env_settings", True))
    for scheme in ("https://", "http://"):
        session.mount(scheme, OneBoundAdapter(pool_maxsize=size))
    return {"transport": RequestsTransport(session=session, **arguments), **arguments}
