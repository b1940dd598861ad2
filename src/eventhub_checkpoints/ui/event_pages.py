"""Pages of events: around a position, found by a search, or the newest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response

from eventhub_checkpoints._shared.times import time_or_duration
from eventhub_checkpoints.operations.monitor import PolledGroup
from eventhub_checkpoints.operations.peek import PeekedEvent, newest_events, peek
from eventhub_checkpoints.operations.search import (
    KINDS,
    MOST_FOUND,
    MOST_READ,
    Ending,
    EventFilter,
    Search,
    position_of_kind,
    search,
    search_hub,
)
from eventhub_checkpoints.receive.position import EventPosition, is_digits
from eventhub_checkpoints.ui.bodies import AFTER, BEFORE, Start, start_of
from eventhub_checkpoints.ui.context import (
    PageContext,
    is_complete,
    is_part,
    lane_of,
    stripped_query,
)

EPOCH = datetime.fromtimestamp(0, UTC)
"""Stands for an unknown time."""
TAIL_SECONDS = 2
"""Seconds between two looks at the newest events."""
SIZES = (1_000, MOST_READ, 100_000)
"""Numbers of events that a search may read."""


@dataclass(frozen=True, slots=True)
class SearchForm:
    """What a search is for, as its form names it.

    Attributes:
        chosen: which events.
        name: of a property, and perhaps its value, as they were typed.
        since: time or duration before now, as it was typed; only for all partitions.
        most: events that it may read.
    """

    chosen: EventFilter
    name: str
    since: str
    most: int

    @classmethod
    def of(cls, request: Request) -> "SearchForm":
        """Return what a query names."""
        query = stripped_query(request)
        name, _, value = query.get("property", "").partition("=")
        most = query.get("most", "")
        return cls(
            EventFilter(query.get("text", ""), query.get("key", ""), name.strip(), value.strip()),
            query.get("property", ""),
            query.get("since", ""),
            int(most) if most in map(str, SIZES) else MOST_READ,
        )

    @property
    def query(self) -> dict[str, str]:
        """Return it as the query of a search of one partition."""
        text, key = self.chosen.text, self.chosen.key
        values = {"search": "on", "text": text, "key": key, "property": self.name}
        return {name: value for name, value in values.items() if value}


@dataclass(frozen=True, slots=True)
class GroupSearch:
    """What a search of all partitions has found.

    Attributes:
        events: the newest of the matches, newest first.
        found: number of matches.
        searches: by partition.
    """

    events: Sequence[PeekedEvent]
    found: int
    searches: Mapping[str, Search]

    @property
    def read(self) -> int:
        """Return the number of events that were read."""
        return sum(each.read for each in self.searches.values())

    @property
    def size(self) -> int:
        """Return the bytes of their bodies."""
        return sum(each.size for each in self.searches.values())

    @property
    def unfinished(self) -> Mapping[str, Search]:
        """Return the searches that have not reached the newest event."""
        return {
            id_: each for id_, each in self.searches.items() if each.ending is not Ending.NEWEST
        }


@dataclass(frozen=True, slots=True)
class EventsQuery:
    """What a page of events shows, as its query names it.

    Attributes:
        kind: of the position to jump to, one of `KINDS`; `""` for the checkpoint.
        value: of that position.
        first: number of the first event of a page that is turned to; `""` if it is not.
        is_tail: whether the newest events are shown, and new ones as they arrive.
        is_search: whether events are searched for.
        form: which events.
    """

    kind: str
    value: str
    first: str
    is_tail: bool
    is_search: bool
    form: SearchForm

    @classmethod
    def of(cls, request: Request) -> "EventsQuery":
        """Return what a query names."""
        query = stripped_query(request)
        at, kind = query.get("at", ""), query.get("by", "number")
        return cls(
            kind if at else "",
            at,
            query.get("first", ""),
            query.get("tail") == "on",
            "search" in query,
            SearchForm.of(request),
        )


class EventPages:
    """Handlers of the pages of events."""

    def __init__(self, context: PageContext) -> None:
        self._context = context

    async def group_events(self, request: Request) -> Response:
        """Search for events of all partitions."""
        polled = self._context.polled(request)
        form, is_search = SearchForm.of(request), "search" in request.query_params
        found, error = None, ""
        if is_search and is_complete(request):
            found, error = await self._context.read(lambda: searched_everywhere(polled, form))
        return self._context.page(
            request,
            "group_events",
            board=self._context.boards.of(polled.scope),
            form=form,
            is_search=is_search,
            found=found,
            error=error,
            sizes=SIZES,
        )

    async def events(self, request: Request) -> Response:
        """Show events around the checkpoint, or those that the query names."""
        polled = self._context.polled(request)
        board = self._context.boards.of(polled.scope)
        lane = lane_of(board, request.path_params["partition"])
        start = start_of(lane.position, polled.missing)
        query, known = EventsQuery.of(request), request.query_params.get("known", "")
        events: list[PeekedEvent] | None = None
        found, error = None, ""
        id_ = lane.position.partition_id
        if is_complete(request) and query.is_search:
            found, error = await self._context.read(lambda: searched(polled, id_, query))
            events = [*found.events] if found else None
        elif is_complete(request) and query.is_tail:
            newest = int(known) if is_part(request) and is_digits(known) else None
            events, error = await self._context.read(lambda: read_newest(polled, id_, newest))
            if events is None and not error:
                return Response(status_code=204)
        elif is_complete(request):
            events, error = await self._context.read(lambda: read_around(polled, id_, start, query))
        return self._context.page(
            request,
            "events",
            board=board,
            lane=lane,
            start=start,
            query=query,
            events=events,
            found=found,
            error=error,
            kinds=KINDS,
            sizes=SIZES,
            page_size=BEFORE + AFTER,
            tail_seconds=TAIL_SECONDS,
        )


def searched_everywhere(polled: PolledGroup, form: SearchForm) -> GroupSearch:
    """Search for events of all partitions.

    Raises:
        ConfigurationError: the time is none.
        HubUnavailableError: the hub did not answer in time, or admits no reader.
    """
    searches = search_hub(
        polled.hub,
        form.chosen,
        since=time_or_duration(form.since, "since") if form.since else None,
        most_read=form.most,
        through=polled.through,
        timeout=polled.timeout,
    )
    events = [event for each in searches.values() for event in each.events]
    events.sort(
        key=lambda event: (event.enqueued_time or EPOCH, event.sequence_number), reverse=True
    )
    return GroupSearch(events[:MOST_FOUND], len(events), searches)


def read_around(
    polled: PolledGroup, partition_id: str, start: Start, query: EventsQuery
) -> list[PeekedEvent]:
    """Read the events around a position.

    Args:
        polled: the group.
        partition_id: which partition.
        start: the first event after the checkpoint.
        query: the position, if it is another one.

    Raises:
        ConfigurationError: it names no position; see also `peek`.
        DataLossError: the event has expired.
        StoreError: the store could not be read.
        HubUnavailableError: the hub did not answer in time, or admits no reader.
    """
    before, position = BEFORE, None
    if query.first:
        position, before = position_of_kind("number", query.first), 0
    elif query.kind:
        position = position_of_kind(query.kind, query.value)
    elif start.number is not None:
        position = EventPosition.from_sequence_number(start.number, inclusive=True)
    return peek(
        polled.store,
        polled.hub,
        partition_id,
        position,
        count=BEFORE + AFTER - before,
        before=before,
        through=polled.through,
        timeout=polled.timeout,
    )


def read_newest(
    polled: PolledGroup, partition_id: str, known: int | None
) -> list[PeekedEvent] | None:
    """Read the newest events, the newest first; None if the newest one is known already.

    Raises:
        HubUnavailableError: the hub did not answer in time, or admits no reader.
    """
    events = newest_events(
        polled.hub,
        partition_id,
        count=BEFORE + AFTER,
        known=known,
        through=polled.through,
        timeout=polled.timeout,
    )
    return events and events[::-1]


def searched(polled: PolledGroup, partition_id: str, query: EventsQuery) -> Search:
    """Search for events.

    Raises:
        ConfigurationError: the number to begin at is none.
        HubUnavailableError: the hub did not answer in time, or admits no reader.
    """
    start = position_of_kind("number", query.first).sequence_number if query.first else None
    return search(
        polled.hub,
        partition_id,
        query.form.chosen,
        start=start,
        most_read=query.form.most,
        through=polled.through,
        timeout=polled.timeout,
    )
