# Derived from _async/requests.py by tools/unasync.py; edit that file.
"""Requests to Redis: the client, scripts, and error mapping."""

from collections.abc import Callable, Sequence
from typing import Any

from azure.core.exceptions import ClientAuthenticationError

from eventhub_checkpoints._shared.deadline import attempt_limit
from eventhub_checkpoints._shared.secrets import masked
from eventhub_checkpoints._shared.settings import Settings, kind_of
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    ConfigurationError,
    MissingDriverError,
    StoreAccessError,
    StoreError,
    StoreUnavailableError,
)
from eventhub_checkpoints.stores._sync.hooks import log
from eventhub_checkpoints.stores.connections import (
    PASSWORD_TWICE,
    REDIS_TOKENS,
    PerProcessClient,
    default_credential,
    secret_source,
    why_unreached,
)
from eventhub_checkpoints.stores.redis._sync.transport import (
    CredentialError,
    Login,
    is_unbounded,
    pooled,
)
from eventhub_checkpoints.stores.redis.protocol import Script, code_of, failure
from eventhub_checkpoints.stores.redis.url import RedisUrl, other_scheme

try:
    from redis import BlockingConnectionPool, Redis, RedisCluster
    from redis.backoff import NoBackoff
    from redis.client import NEVER_DECODE
    from redis.exceptions import (
        ClusterError,
        NoScriptError,
        RedisClusterException,
        RedisError,
        ResponseError,
    )
    from redis.exceptions import ConnectionError as DriverConnectionError
    from redis.exceptions import TimeoutError as DriverTimeoutError
    from redis.retry import Retry
except ImportError as error:
    raise MissingDriverError.of_extra("the Redis store", "redis") from error

Client = Redis | RedisCluster
AS_BYTES = {NEVER_DECODE: True}
"""Foreign values need not be text, even if a ready client decodes all responses."""
UNANSWERED = (DriverConnectionError, DriverTimeoutError, ClusterError, RedisClusterException)


NO_IDENTITY = (
    "entra=True takes azure-identity's default credential: python -m pip install azure-identity; "
    "or pass credential="
)


def checked_client(client: Any) -> Client:
    """Return a ready client if it is of the right kind, sync or async.

    Raises:
        ConfigurationError: it is not.
    """
    if not isinstance(client, Redis | RedisCluster):
        raise ConfigurationError(
            f"client is a {kind_of(client)}; expected {Redis.__module__.rpartition('.')[0]}.Redis, "
            "RedisCluster, or what Sentinel's master_for gives there"
        )
    if is_unbounded(client):
        log.warning(
            "the Redis client has no socket_timeout: a server that hangs holds the caller up, "
            "whatever operation_timeout and write_timeout say"
        )
    return client


class RedisRequests:
    """Requests to one server or cluster.

    Args:
        make: creates the client; see `PerProcessClient`.
        address: of the server, for messages.
        namespace: prefix of the store's keys.
    """

    def __init__(self, make: Callable[[], Client], address: str, namespace: str) -> None:
        self.address = address
        self.namespace = namespace
        self._client = PerProcessClient(make)
        self._has_answered = False

    @property
    def client(self) -> Client:
        """Return the client of this process and event loop."""
        return self._client.now

    def begin_anew(self) -> None:
        """Use a new client, unless the caller passed a ready one."""
        self._client.begin_anew()

    def close(self) -> None:
        """Do nothing: a ready client is closed by its owner."""

    def run(self, script: Script, keys: Sequence[str], arguments: Sequence[str] = ()) -> Any:
        """Run a script in one round trip, or in two if the server has not cached it.

        Raises:
            CheckpointStoreError: see `map_error`; the message names the key.
        """
        words = [len(keys), *keys, *arguments]
        send: Callable[..., Any] = self.client.execute_command
        try:
            try:
                answer = send("EVALSHA", script.digest, *words, **AS_BYTES)
            except NoScriptError:
                # The script has certainly not run: the cache is new, or another server took over.
                answer = send("EVAL", script.text, *words, **AS_BYTES)
        except ResponseError as error:
            if code_of(error) == "READONLY":
                self._leave()
            raise self.failure(error, f"{script.does} in {keys[0]!r}") from error
        self._has_answered = True
        return answer

    def _leave(self) -> None:
        """Close the connections to a demoted server, so that new ones reach its successor.

        A cluster's connections stay open: its nodes redirect requests.
        """
        if isinstance(self.client, RedisCluster):
            return
        pool = self.client.connection_pool
        if isinstance(pool, BlockingConnectionPool):
            pool.disconnect()
        else:
            # Others may be in use by the caller.
            pool.disconnect(inuse_connections=False)

    def eviction_policies(self) -> list[str]:
        """Return the `maxmemory-policy` of each primary; empty if it cannot be read."""
        nodes = {}
        if isinstance(self.client, RedisCluster):
            nodes = {"target_nodes": RedisCluster.PRIMARIES}
        try:
            answer = self.client.info("memory", **nodes)
        except ResponseError as error:
            # The permission to SELECT a database may be missing as well.
            if code_of(error) != "NOPERM" or "'info" not in str(error).lower():
                raise
            return []
        answers = [answer] if "maxmemory_policy" in answer else answer.values()
        return [one["maxmemory_policy"] for one in answers if isinstance(one, dict)]

    def keys(self, pattern: str) -> set[str]:
        """Return all keys that match a pattern, on every primary of a cluster."""
        return {
            key if isinstance(key, str) else key.decode(errors="replace")
            for key in self.client.scan_iter(match=pattern, count=1000)
        }

    def map_error(self, error: Exception) -> CheckpointStoreError:
        """Convert a driver's error to an error of this package."""
        return self.failure(error, "a request")

    def failure(self, error: Exception, did: str) -> CheckpointStoreError:
        """Convert a driver's error to an error that names the attempted operation."""
        what = f"Redis at {self.address}, {did}"
        if isinstance(error, CredentialError):
            return no_credential(error, what)
        code = code_of(error)
        if not code and isinstance(error, (OSError, *UNANSWERED)):
            why = why_unreached(error)
            said = why or masked(str(error)) or "no answer in time"
            hint = "" if why or self._has_answered else other_scheme(self.address, error)
            return StoreUnavailableError(f"{what}: {said} ({type(error).__name__}){hint}")
        if not isinstance(error, RedisError):
            return StoreError(f"{what}: {type(error).__name__}: {masked(str(error))}")
        return failure(code, masked(str(error)), what, self.namespace)


def address_of(client: Client) -> str:
    """Return the address of a ready client, for messages, without its secrets."""
    known = getattr(getattr(client, "connection_pool", None), "connection_kwargs", {})
    return f"{known['host']}:{known.get('port', '')}" if "host" in known else "a ready client"


class OwnRequests(RedisRequests):
    """Requests through a client of the store, which sends each of them once."""

    def __init__(
        self, url: RedisUrl, namespace: str, credential: Any, entra: bool, settings: Settings
    ) -> None:
        if entra and credential is not None:
            raise ConfigurationError("entra is True; expected no credential with it")
        if url.has_password and (entra or credential is not None):
            raise ConfigurationError(PASSWORD_TWICE)
        self._url = url
        self._source = secret_source(credential, REDIS_TOKENS)
        self._entra = entra
        self._settings = settings
        self._identities: list[Any] = []
        super().__init__(self._connected, url.address, namespace)

    def _connected(self) -> Redis:
        """Create a client. RESP 2 saves one request per connect, and every proxy supports it."""
        login = self._login()
        try:
            self._pool = pooled(
                self._url.without_user() if login else self._url.driver_url,
                attempt_limit(self._settings.write_timeout, self._settings.write_timeout),
                max_connections=self._settings.max_concurrency,
                client_name="eventhub-checkpoints",
                credential_provider=login,
                protocol=2,
                retry=Retry(NoBackoff(), 0),
            )
        except ValueError as error:
            # Not chained: the driver's error may repeat the value.
            raise ConfigurationError(f"an option of the URL cannot be used: {error}") from None
        return Redis(connection_pool=self._pool)

    def _login(self) -> Login | None:
        source = self._source
        if self._entra:
            # An async credential belongs to the event loop in which it was first used.
            self._identities = [default_credential("azure.identity", NO_IDENTITY)]
            source = secret_source(self._identities[0], REDIS_TOKENS)
        return Login(self._url.username, source) if source else None

    def close(self) -> None:
        """Close the client, and a default credential."""
        self._pool.disconnect()
        for identity in self._identities:
            identity.close()


def no_credential(error: CredentialError, what: str) -> CheckpointStoreError:
    """Return the error for a connection without a secret."""
    cause = error.__cause__
    if isinstance(cause, CheckpointStoreError):
        return cause
    # The cause's own message may contain anything, including a secret.
    said = f"{what}: {error}: {type(cause).__name__}"
    if isinstance(cause, ClientAuthenticationError):
        return StoreAccessError(said)
    return StoreUnavailableError(said)
