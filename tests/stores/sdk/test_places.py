"""The real client on every backend while its place vanishes under it."""

from typing import Any

from backends import Backend, Place
from eventhub_checkpoints.errors import StoreNotReadyError
from stores_in_turn import in_turn

ALL = ["0", "1"]
CREATES_NOTHING = {"memory", "redis"}
"""A place that has vanished is an empty one there."""


def saved(place: Place) -> dict[str, int]:
    return {key: int(row["sequencenumber"]) for key, row in place.rows("checkpoint").items()}


# Both clients go on in the same way; what each backend says of a missing place it says to both.
@in_turn(variant="site")
def test_a_place_that_vanishes_stops_no_processing(
    site: Any, backend: Backend, place: Place, wait: Any
) -> None:
    consumer = site.start(site.open(place))
    wait(lambda: consumer.owned == set(ALL))
    place.vanish()
    if backend.name not in CREATES_NOTHING:
        wait(lambda: consumer.saw(StoreNotReadyError))
    site.publish(5)
    wait(lambda: consumer.total == 10)
    assert consumer.closed == []
    if backend.name not in CREATES_NOTHING:
        place.create()
    wait(lambda: set(place.rows("ownership")) == set(ALL))
    consumer.saves = lambda event: True
    site.publish(1)
    wait(lambda: saved(place) == dict.fromkeys(ALL, 5))
    assert consumer.events == {key: list(range(6)) for key in ALL}
    assert consumer.closed == []
