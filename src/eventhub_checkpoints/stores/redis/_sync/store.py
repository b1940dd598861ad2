# Derived from _async/store.py by tools/unasync.py; edit that file.
"""Checkpoint store in Redis: two hashes for each consumer group, every decision in one script.

`RedisRequests` sends the scripts and maps errors, `OwnRequests` also creates the client, and
`RedisCheckpointStore` is the store.
"""

from collections.abc import Callable, Sequence
from typing import Any, Self, Unpack

from azure.core.exceptions import ClientAuthenticationError
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

from eventhub_checkpoints import errors
from eventhub_checkpoints._shared._sync.compat import for_each
from eventhub_checkpoints._shared.arguments import with_checked_arguments
from eventhub_checkpoints._shared.connection_errors import why_unreached
from eventhub_checkpoints._shared.deadline import attempt_limit
from eventhub_checkpoints._shared.error_messages import message_of
from eventhub_checkpoints._shared.settings import Settings, StoreSettings, kind_of, require_flag
from eventhub_checkpoints.records import Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores import connections
from eventhub_checkpoints.stores._sync.base import FullCheckpointStore
from eventhub_checkpoints.stores._sync.hooks import log
from eventhub_checkpoints.stores.hook_results import (
    FORCE,
    Conflict,
    Listing,
    Lost,
    Seen,
    Won,
    Written,
)
from eventhub_checkpoints.stores.redis import protocol
from eventhub_checkpoints.stores.redis._sync.transport import (
    CredentialError,
    Login,
    is_unbounded,
    pooled,
)
from eventhub_checkpoints.stores.redis.url import RedisUrl, checked_namespace, other_scheme

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
        raise errors.ConfigurationError(
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
        self._client = connections.PerProcessClient(make)
        self._has_answered = False

    @property
    def client(self) -> Client:
        """Return the client of this process and event loop."""
        return self._client.now

    def reset(self) -> None:
        """Create a new client, unless the caller passed a ready one."""
        self._client.reset()

    def close(self) -> None:
        """Do nothing: a ready client is closed by its owner."""

    def run(
        self, script: protocol.Script, keys: Sequence[str], arguments: Sequence[str] = ()
    ) -> Any:
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
            if protocol.code_of(error) == "READONLY":
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
            if protocol.code_of(error) != "NOPERM" or "'info" not in str(error).lower():
                raise
            return []
        answers = [answer] if "maxmemory_policy" in answer else answer.values()
        return [node["maxmemory_policy"] for node in answers if isinstance(node, dict)]

    def keys(self, pattern: str) -> set[str]:
        """Return all keys that match a pattern, on every primary of a cluster."""
        return {
            key if isinstance(key, str) else key.decode(errors="replace")
            for key in self.client.scan_iter(match=pattern, count=1000)
        }

    def map_error(self, error: Exception) -> errors.CheckpointStoreError:
        """Convert a driver's error to an error of this package."""
        return self.failure(error, "a request")

    def failure(self, error: Exception, operation: str) -> errors.CheckpointStoreError:
        """Convert a driver's error to an error that names the attempted operation."""
        what = f"Redis at {self.address}, {operation}"
        if isinstance(error, CredentialError):
            return no_credential(error, what)
        code = protocol.code_of(error)
        if not code and isinstance(error, (OSError, *UNANSWERED)):
            why = why_unreached(error)
            reason = why or message_of(error) or "no answer in time"
            hint = "" if why or self._has_answered else other_scheme(self.address, error)
            return errors.StoreUnavailableError(f"{what}: {reason} ({type(error).__name__}){hint}")
        if not isinstance(error, RedisError):
            return errors.StoreError(f"{what}: {type(error).__name__}: {message_of(error)}")
        return protocol.failure(code, message_of(error), what, self.namespace)


def address_of(client: Client) -> str:
    """Return the address of a ready client, for messages, without its secrets."""
    known = getattr(getattr(client, "connection_pool", None), "connection_kwargs", {})
    return f"{known['host']}:{known.get('port', '')}" if "host" in known else "a ready client"


class OwnRequests(RedisRequests):
    """Requests through a client of the store, which sends each of them once."""

    def __init__(
        self,
        url: RedisUrl,
        namespace: str,
        credential: Any,
        entra: bool,
        audience: str | None,
        settings: Settings,
    ) -> None:
        if entra and credential is not None:
            raise errors.ConfigurationError(
                "entra=True and credential exclude each other; pass one of them"
            )
        if url.has_password and (entra or credential is not None):
            raise errors.ConfigurationError(connections.PASSWORD_TWICE)
        self._url = url
        audience = connections.checked_audience(
            connections.given_once("audience", audience, url.audience), credential, entra
        )
        self._token_scope = connections.scope_of(audience or protocol.AUDIENCE)
        self._source = connections.secret_source(credential, self._token_scope)
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
                attempt_limit(self._settings.write_timeout),
                max_connections=self._settings.max_concurrency,
                client_name="eventhub-checkpoints",
                credential_provider=login,
                protocol=2,
                retry=Retry(NoBackoff(), 0),
            )
        except ValueError as error:
            # Not chained: the driver's error may repeat the value.
            raise errors.ConfigurationError(
                f"an option of the URL cannot be used: {error}"
            ) from None
        return Redis(connection_pool=self._pool)

    def _login(self) -> Login | None:
        source = self._source
        if self._entra:
            # An async credential belongs to the event loop in which it was first used.
            self._identities = [
                connections.default_credential("azure.identity", self._url.host, NO_IDENTITY)
            ]
            source = connections.secret_source(self._identities[0], self._token_scope)
        return Login(self._url.username, source) if source else None

    def close(self) -> None:
        """Close the client, and a default credential."""
        self._pool.disconnect()
        for identity in self._identities:
            identity.close()


def no_credential(error: CredentialError, what: str) -> errors.CheckpointStoreError:
    """Return the error for a connection without a secret."""
    cause = error.__cause__
    if isinstance(cause, errors.CheckpointStoreError):
        return cause
    # The cause's own message may contain anything, including a secret.
    message = f"{what}: {error}: {type(cause).__name__}"
    if isinstance(cause, ClientAuthenticationError):
        return errors.StoreAccessError(message)
    return errors.StoreUnavailableError(message)


class RedisCheckpointStore(FullCheckpointStore):
    """Stores ownerships and checkpoints as JSON in hashes of one Redis server or cluster.

    Acknowledged writes can still be lost: by a crash before they are on disk, by a failover
    before they are replicated. `docs/reference/redis.md` describes the consequences for G1 and G3.

    Args:
        url: `redis://` or `rediss://`, with the options that redis-py reads from its query.
        client: a ready `Redis`, `RedisCluster` or client of a Sentinel's primary instead. It is
            not closed.
        namespace: prefix of all keys; by default `eventhub-checkpoints`.
        credential: the password at each connect: a string, a callable, or a credential of
            azure-identity. The user is that of the URL, else that of the token.
        entra: use the default credential of azure-identity.
        audience: whom the tokens are for, if not Azure's Redis.
        allow_eviction: use a server that may evict keys when its memory is full: partitions then
            lose their owners, and checkpoints start over.
        **settings: see `StoreSettings`.

    Raises:
        ConfigurationError: a setting is invalid.
    """

    @with_checked_arguments
    def __init__(
        self,
        url: str = "",
        *,
        client: Any = None,
        namespace: str | None = None,
        credential: Any = None,
        entra: bool = False,
        audience: str | None = None,
        allow_eviction: bool = False,
        **settings: Unpack[StoreSettings],
    ) -> None:
        super().__init__(**settings)
        require_flag("allow_eviction", allow_eviction)
        require_flag("entra", entra)
        self._allow_eviction = allow_eviction
        self._requests: RedisRequests
        if client is None:
            address = RedisUrl.parse(url)
            self.namespace = checked_namespace(namespace, address.namespace)
            self._requests = OwnRequests(
                address, self.namespace, credential, entra, audience, self.settings
            )
            return
        if url or credential is not None or entra or audience is not None:
            raise errors.ConfigurationError(
                "client is ready; leave url, credential, entra and audience out"
            )
        self.namespace = checked_namespace(namespace)
        ready = checked_client(client)
        self._requests = RedisRequests(lambda: ready, address_of(ready), self.namespace)

    @classmethod
    def from_url(cls, url: str, *, credential: Any = None, **settings: Any) -> Self:
        """Open `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE][?namespace=NAME]`, or `rediss://`.

        The query may also contain `audience`, and options of redis-py.

        Raises:
            ConfigurationError: it is not such a URL, or a setting is invalid.
        """
        return cls(url, credential=credential, **settings)

    def __repr__(self) -> str:
        return f"RedisCheckpointStore({self._requests.address}, namespace={self.namespace!r})"

    def open(self) -> None:
        policies = self._requests.eviction_policies()
        if not policies:
            log.warning(
                "Redis at %s does not tell its maxmemory-policy (INFO memory): make sure that it "
                "is noeviction, or partitions and checkpoints may be evicted",
                self._requests.address,
            )
        evicting = sorted(each for each in policies if each.startswith(protocol.EVICTS))
        if evicting and not self._allow_eviction:
            raise errors.StoreNotReadyError(
                f"Redis at {self._requests.address} has maxmemory-policy {evicting[0]} and may "
                "evict ownerships and checkpoints: set it to noeviction, or open the store with "
                "allow_eviction=True"
            )

    def close(self) -> None:
        super().close()
        self._requests.close()

    def drop_connections(self) -> None:
        self._requests.reset()

    def map_error(self, error: Exception) -> errors.CheckpointStoreError:
        return self._requests.map_error(error)

    def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        return protocol.ownerships(
            scope, self._requests.run(protocol.LIST, [self._key(scope, "ownership")])
        )

    def try_claim(self, proposal: Proposal) -> Won | Lost:
        return (self._claim([proposal]))[0]

    def try_claims(self, proposals: Sequence[Proposal]) -> Sequence[Won | Lost | Exception]:
        """Claim in one round trip for each consumer group; a client has one."""
        groups: dict[Scope, list[Proposal]] = {}
        for proposal in proposals:
            groups.setdefault(self.identity(proposal.scope), []).append(proposal)
        batches = list(groups.values())
        answers = for_each(self._try_group, batches, self.settings.max_concurrency)
        results: dict[Proposal, Won | Lost | Exception] = {}
        for batch, group in zip(batches, answers, strict=True):
            results.update(zip(batch, group, strict=True))
        return [results[proposal] for proposal in proposals]

    def _try_group(self, batch: Sequence[Proposal]) -> Sequence[Won | Lost | Exception]:
        try:
            return self._engine.runner.call(self._claim, batch)
        except Exception as error:
            return [error] * len(batch)

    def _claim(self, batch: Sequence[Proposal]) -> Sequence[Won | Lost]:
        key = self._key(batch[0].scope, "ownership")
        arguments = protocol.claim_arguments(batch)
        time, answers = self._requests.run(protocol.CLAIM, [key], arguments)
        return [
            Won(proposal.won(protocol.seconds(time)))
            if raw is None
            else Lost(
                protocol.ownership_of(
                    proposal.scope, proposal.partition_id, *protocol.value_of(raw, "etag")
                )
            )
            for proposal, raw in zip(batch, answers, strict=True)
        ]

    def read_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        return protocol.checkpoints(
            scope, self._requests.run(protocol.LIST, [self._key(scope, "checkpoint")])
        )

    def write_checkpoint(self, checkpoint: Checkpoint, seen: str | Seen) -> Written | Conflict:
        key = self._key(checkpoint.scope, "checkpoint")
        arguments = checkpoint_arguments(checkpoint, seen, self.writer)
        stored, *raw = self._requests.run(protocol.WRITE_CHECKPOINT, [key], arguments)
        if stored:
            return Written(checkpoint.version)
        if raw[0] is None:
            return Conflict(None)
        return Conflict(
            protocol.stored_checkpoint(checkpoint.scope, checkpoint.partition_id, raw[0])
        )

    def read_scopes(self) -> Sequence[Scope]:
        keys = self._requests.keys(protocol.all_keys(self.namespace))
        return list({scope for key in keys if (scope := protocol.scope_of(self.namespace, key))})

    def delete_rows(self, scope: Scope, partition_id: str | None) -> int:
        keys = [self._key(scope, "ownership"), self._key(scope, "checkpoint")]
        arguments = [] if partition_id is None else [partition_id]
        return int(self._requests.run(protocol.DELETE, keys, arguments))

    def _key(self, scope: Scope, kind: protocol.Kind) -> str:
        return protocol.hash_key(self.namespace, scope, kind)


def checkpoint_arguments(checkpoint: Checkpoint, seen: str | Seen, writer: str) -> list[str]:
    """Return the arguments of `WRITE_CHECKPOINT`."""
    allowed = "same" if isinstance(seen, str) else "any" if seen is FORCE else "none"
    return [
        checkpoint.partition_id,
        allowed,
        seen if isinstance(seen, str) else "",
        checkpoint.offset,
        str(checkpoint.sequence_number),
        checkpoint.version,
        writer,
    ]
