"""A store that is closed before its client: the client's partitions are released all the same."""

from typing import Any

import pytest


@pytest.mark.long  # a sync client ends its pause of 30 s before it closes
def test_a_client_releases_its_partitions_after_the_store_was_closed(
    site: Any, blob_container: Any, stored: Any, wait: Any
) -> None:
    store = site.store(blob_container)
    site.publish(1)
    # The answer to a renewal that is under way at the close would be lost, with its new etag.
    consumer = site.start(store, load_balancing_interval=30.0)
    wait(lambda: consumer.owned == {"0", "1"} and consumer.total == 2)
    assert all(stored.owners().values())
    site.loop.finished(store.close())
    site.closed(consumer)
    assert stored.owners() == {"0": "", "1": ""}


def test_a_client_whose_store_was_closed_reports_it(
    site: Any, blob_container: Any, wait: Any
) -> None:
    store = site.store(blob_container)
    consumer = site.start(store)
    wait(lambda: consumer.owned)
    site.loop.finished(store.close())
    wait(lambda: consumer.errors)
    [text] = {str(error) for _, error in consumer.errors}
    assert text.startswith("this BlobCheckpointStore is closed: close a store after the client")
    site.closed(consumer)
