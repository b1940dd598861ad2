"""Requests to Redis: the client they go through, scripts, and errors as ours."""

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
from eventhub_checkpoints.stores._async.hooks import log
from eventhub_checkpoints.stores.credentials import (
    PASSWORD_TWICE,
    REDIS_TOKENS,
    default_credential,
    secret_source,
)
from eventhub_checkpoints.stores.per_process_client import PerProcessClient
from eventhub_checkpoints.stores.redis._async.transport import (
    CredentialError,
    Login,
    is_unbounded,
    pooled,
)
from eventhub_checkpoints.stores.redis.protocol import Script, code_of, failure
from eventhub_checkpoints.stores.redis.url import RedisUrl, other_scheme
from eventhub_checkpoints.stores.unreachable import why_unreached

try:
    from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster
    from redis.asyncio.retry import Retry
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
except ImportError as error:
    raise MissingDriverError.of_extra("the Redis store", "redis") from error

Client = Redis | RedisCluster
AS_BYTES = {NEVER_DECODE: True}
"""A value of somebody else's need not be text, also where a ready client decodes all answers."""
UNANSWERED = (DriverConnectionError, DriverTimeoutError, ClusterError, RedisClusterException)


NO_IDENTITY = (
    "entra=True takes azure-identity's default credential: python -m pip install azure-identity; "
    "or pass credential="
)


def checked_client(client: Any) -> Client:
    """A ready client of this colour.

    Raises:
        ConfigurationError: it is none.
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
    """What is asked of one server or cluster, in one place after another.

    Args:
        make: gives the client; see `PerProcessClient`.
        address: of the server, for people.
        namespace: what the keys of the store begin with.
    """

    def __init__(self, make: Callable[[], Client], address: str, namespace: str) -> None:
        self.address = address
        self.namespace = namespace
        self._client = PerProcessClient(make)
        self._has_answered = False

    @property
    def client(self) -> Client:
        """The client of this process and event loop."""
        return self._client.now

    def begin_anew(self) -> None:
        """Use a new client, if it is ours to make."""
        self._client.begin_anew()

    async def close(self) -> None:
        """A ready client is its owner's to close."""

    async def run(self, script: Script, keys: Sequence[str], arguments: Sequence[str] = ()) -> Any:
        """Run a script in one round trip; two where the server does not know it yet.

        Raises:
            CheckpointStoreError: as `map_error` says, with the key.
        """
        words = [len(keys), *keys, *arguments]
        send: Callable[..., Any] = self.client.execute_command
        try:
            try:
                answer = await send("EVALSHA", script.digest, *words, **AS_BYTES)
            except NoScriptError:
                # Certain that it has not run: it was flushed, or another server has taken over.
                answer = await send("EVAL", script.text, *words, **AS_BYTES)
        except ResponseError as error:
            if code_of(error) == "READONLY":
                await self._leave()
            raise self.failure(error, f"{script.does} in {keys[0]!r}") from error
        self._has_answered = True
        return answer

    async def _leave(self) -> None:
        """Close the connections to a server that was demoted: the next are made to its successor.

        Not those of a cluster, whose nodes say themselves where to go.
        """
        if isinstance(self.client, RedisCluster):
            return
        pool = self.client.connection_pool
        if isinstance(pool, BlockingConnectionPool):
            await pool.disconnect()
        else:
            # Others may be in use for the caller's own work.
            await pool.disconnect(inuse_connections=False)

    async def eviction_policies(self) -> list[str]:
        """The `maxmemory-policy` of each primary; none where it cannot be read."""
        nodes = {}
        if isinstance(self.client, RedisCluster):
            nodes = {"target_nodes": RedisCluster.PRIMARIES}
        try:
            answer = await self.client.info("memory", **nodes)
        except ResponseError as error:
            # The right to SELECT a database may be missing, too.
            if code_of(error) != "NOPERM" or "'info" not in str(error).lower():
                raise
            return []
        answers = [answer] if "maxmemory_policy" in answer else answer.values()
        return [one["maxmemory_policy"] for one in answers if isinstance(one, dict)]

    async def keys(self, pattern: str) -> set[str]:
        """All keys that fit a pattern, on every primary of a cluster."""
        return {
            key if isinstance(key, str) else key.decode(errors="replace")
            async for key in self.client.scan_iter(match=pattern, count=1000)
        }

    def map_error(self, error: Exception) -> CheckpointStoreError:
        """The driver's error as one of ours."""
        return self.failure(error, "a request")

    def failure(self, error: Exception, did: str) -> CheckpointStoreError:
        """The driver's error as one of ours, saying what was done."""
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
    """Where a ready client goes, for people; never the secrets that it was given."""
    known = getattr(getattr(client, "connection_pool", None), "connection_kwargs", {})
    return f"{known['host']}:{known.get('port', '')}" if "host" in known else "a ready client"


class OwnRequests(RedisRequests):
    """Requests through a client of our own, which sends each of them once."""

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
        """A new client. RESP 2: it saves a request at each connect, and every proxy speaks it."""
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
            # One of the async colour belongs to the event loop that it was first used in.
            self._identities = [default_credential("azure.identity.aio", NO_IDENTITY)]
            source = secret_source(self._identities[0], REDIS_TOKENS)
        return Login(self._url.username, source) if source else None

    async def close(self) -> None:
        """Close the client, and a default credential."""
        await self._pool.disconnect()
        for identity in self._identities:
            await identity.close()


def no_credential(error: CredentialError, what: str) -> CheckpointStoreError:
    """The error for a connection that has no secret to begin with."""
    cause = error.__cause__
    if isinstance(cause, CheckpointStoreError):
        return cause
    # The cause's own text is its author's, and may hold anything.
    said = f"{what}: {error}: {type(cause).__name__}"
    if isinstance(cause, ClientAuthenticationError):
        return StoreAccessError(said)
    return StoreUnavailableError(said)
