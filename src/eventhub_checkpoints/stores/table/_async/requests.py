"""Requests to one table, limited to the time that the current call has left."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from eventhub_checkpoints.errors import StoreError, StoreNotReadyError, StoreUnavailableError
from eventhub_checkpoints.stores.azure_storage._async.authorized import AuthorizedConnections
from eventhub_checkpoints.stores.azure_storage._async.http import HttpConnections
from eventhub_checkpoints.stores.azure_storage.authorization import Authorization
from eventhub_checkpoints.stores.azure_storage.messages import (
    Refusal,
    Request,
    Verdict,
    new_etag,
    server_time,
)
from eventhub_checkpoints.stores.table import protocol, rest, transactions
from eventhub_checkpoints.stores.table.rest import Entity, Key, Update
from eventhub_checkpoints.stores.table.transactions import Failed

T = TypeVar("T")


class TableRequests(AuthorizedConnections):
    """Sends each request once.

    A response that a caller has to expect is returned; every other one is raised as `StoreError`.

    Args:
        table: builds the requests.
        authorization, connect: see `AuthorizedConnections`.
    """

    def __init__(
        self,
        table: rest.Table,
        authorization: Authorization,
        connect: Callable[[], HttpConnections],
    ) -> None:
        super().__init__(authorization, connect)
        self._table = table

    @property
    def address(self) -> str:
        """Return the table's URL, without a SAS."""
        return self._table.url

    def failure(self, refusal: Refusal) -> StoreError:
        """Return the error for a request that was not carried out."""
        return protocol.failure(refusal, self.address)

    async def create_table(self) -> None:
        """Create the table, unless it exists."""
        answer = await self.send(self._table.create_table())
        if isinstance(answer, Refusal) and answer.code != "TableAlreadyExists":
            raise self.failure(answer)

    async def insert(self, key: Key, fields: dict[str, str]) -> str | Refusal:
        """Create an entity; return its etag, or the refusal if it exists."""
        return await self._write(self._table.insert(key, fields))

    async def update(self, key: Key, fields: dict[str, str], etag: str | None) -> str | Refusal:
        """Replace an entity if the etag matches, or store it if the etag is None.

        Returns:
            The new etag; the refusal if the etag does not match, or the entity is absent.
        """
        return await self._write(self._table.update(key, fields, etag))

    async def _write(self, request: Request) -> str | Refusal:
        answer = await self.send(request)
        if not isinstance(answer, Refusal):
            return new_etag(answer.headers.get("ETag"))
        return self._granted(answer) if protocol.verdict(answer) is Verdict.FAILED else answer

    async def update_all(self, updates: Sequence[Update]) -> list[str] | Failed:
        """Replace all of these entities, or none; return their etags, or what failed first.

        A failure that may not be that of each entity is returned; any other is raised. Azurite 3.35
        refuses every transaction with the SAS of a table, but not the same updates alone.
        """
        request = transactions.request_of(self._table, updates)
        answer = await self.send(request)
        if isinstance(answer, Refusal):
            outcome: list[str] | Failed = Failed(None, answer)
        else:
            outcome = transactions.outcome_of(answer, len(updates))
        if isinstance(outcome, Failed):
            failure = self.failure(outcome.refusal)
            if isinstance(failure, StoreNotReadyError | StoreUnavailableError):
                raise failure
        return outcome

    async def read(self, key: Key) -> Entity | None:
        """Return an entity; None if it does not exist."""
        answer = await self.send(self._table.read(key))
        if isinstance(answer, Refusal) and protocol.verdict(answer) is Verdict.ABSENT:
            return None
        return rest.entity_of(rest.json_of(self._granted(answer)))

    async def delete(self, key: Key) -> bool:
        """Delete an entity; return whether it existed."""
        answer = await self.send(self._table.delete(key))
        if isinstance(answer, Refusal) and protocol.verdict(answer) is not Verdict.ABSENT:
            raise self.failure(answer)
        return not isinstance(answer, Refusal)

    async def list_entities(
        self, condition: str, *, keys_only: bool = False, most: int | None = None
    ) -> tuple[list[Entity], float | None]:
        """List entities; also return the service's time at the last page.

        Args:
            condition: that they fulfil.
            keys_only: leave out their properties.
            most: read no page after so many entities; None: read all.
        """
        page = await self._page(condition, {}, keys_only)
        entities = page.entities
        while page.following and (most is None or len(entities) < most):
            page = await self._page(condition, page.following, keys_only)
            entities += page.entities
        return entities, server_time(page.date)

    async def list_partition_keys(self) -> list[str]:
        """List the partition keys of the table.

        The service cannot list them alone. Each page continues after the last key of the previous
        one, so that of a key with many entities one page is read.
        """
        keys: dict[str, None] = {}
        condition, following = "", dict[str, str]()
        while True:
            page = await self._page(condition, following, keys_only=True)
            keys.update(dict.fromkeys(entity.key.partition for entity in page.entities))
            if not page.following:
                return list(keys)
            following = page.following
            if page.entities:
                last = rest.literal(page.entities[-1].key.partition)
                condition, following = f"PartitionKey gt {last}", {}

    async def _page(self, condition: str, following: dict[str, str], keys_only: bool) -> rest.Page:
        answer = await self.send(self._table.query(condition, following, keys_only))
        return rest.page_of(self._granted(answer))

    def _granted(self, answer: T | Refusal) -> T:
        if isinstance(answer, Refusal):
            raise self.failure(answer)
        return answer
