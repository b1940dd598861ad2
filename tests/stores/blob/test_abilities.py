"""What the layout and rights of Blob storage add to its abilities; see also `stores/backends`."""

from typing import Any

import pytest

from eventhub_checkpoints.errors import StoreAccessError, StoreNotReadyError, StoreUnavailableError
from eventhub_checkpoints.records import Scope
from waiting import LIMIT


def names(scope: Scope) -> tuple[str, ...]:
    return tuple(scope.as_dict().values())


def test_more_levels_and_groups_than_a_page_are_all_listed(
    variant: Any, client: Any, blob_container: Any
) -> None:
    scopes = [Scope(f"ns{n}", f"hub{hub}", "$default") for n in range(3) for hub in range(3)]
    for scope in scopes:
        client.within(scope).take("0", "a")

    class Paged(variant.driver):
        def walk_blobs(self, **kwargs: Any) -> Any:
            return super().walk_blobs(results_per_page=2, **kwargs)

    text = blob_container.connection_string

    def connect(**options: Any) -> Any:
        return Paged.from_connection_string(text, blob_container.name, **options)

    paged = variant.client(variant.store(connect=connect))
    assert paged.call("list_scopes") == sorted(scopes, key=str)


def test_blobs_that_are_no_rows_make_no_group_and_are_not_deleted(
    client: Any, raw: Any, scope: Scope
) -> None:
    foreign = [
        "a", "a/b", "a/b/c", "a/b/c/ownership", "a/b/c/other/0", "a//c/ownership/0", "/a/b/c/0",
        f"{scope.folded}/checkpoint/3/deeper", f"{scope.folded}/other/0",
    ]  # fmt: skip
    for name in foreign:
        raw.upload_blob(name, b"")
    raw.upload_blob(f"{scope.folded}/checkpoint/4", b"", metadata={"hdi_isfolder": "true"})
    assert client.call("list_scopes") == []
    client.save("0", 7)
    assert client.call("list_scopes") == [scope.folded]
    assert client.call("delete_scope", *names(scope)) == 1
    assert {blob.name for blob in raw.list_blobs()} == {*foreign, f"{scope.folded}/checkpoint/4"}


def test_a_group_in_another_case_is_another_store_objects(
    variant: Any, client: Any, blob_container: Any, scope: Scope
) -> None:
    typed = variant.open(blob_container, name_case="as-typed")
    typed.take("0", "a")
    assert (client.call("list_scopes"), typed.call("list_scopes")) == ([], [scope])
    assert client.call("delete_scope", *names(scope)) == 0
    client.take("0", "a")
    assert client.call("list_scopes") == [scope.folded]
    assert typed.call("list_scopes") == sorted([scope, scope.folded], key=str)
    assert typed.call("delete_scope", *names(scope)) == 1
    assert client.owner("0") == "a"


@pytest.mark.parametrize("forget", ["delete_scope", "delete_partition"])
def test_a_signature_without_the_right_to_delete_is_told_so(
    variant: Any, client: Any, blob_container: Any, sas: Any, scope: Scope, forget: str
) -> None:
    client.take("0", "a")
    for rights in ("rcwl", "rcwld"):
        url = f"{blob_container.url}?{sas(rights)}"
        limited = variant.client(variant.store.from_container_url(url))
        arguments = [*names(scope), *(["0"] if forget == "delete_partition" else [])]
        if rights == "rcwl":
            with pytest.raises(StoreAccessError, match="lacks Delete on its blobs"):
                limited.call(forget, *arguments)
            assert client.owner("0") == "a"
        else:
            assert limited.call(forget, *arguments) == 1


def test_a_container_that_is_missing_is_named(client: Any, raw: Any, scope: Scope) -> None:
    raw.delete_container()
    with pytest.raises(StoreNotReadyError, match="create_container=True"):
        client.call("list_scopes")
    with pytest.raises(StoreNotReadyError, match="create_container=True"):
        client.call("delete_partition", *names(scope), "0")


def test_a_deletion_is_asked_again_and_counts_what_it_has_seen(
    watched: Any, proxy: Any, scope: Scope
) -> None:
    for partition_id in ("0", "1", "2"):
        watched.take(partition_id, "a")
    proxy.on("DELETE", times=1).refuse(503, "ServerBusy")
    assert watched.call("delete_scope", *names(scope)) >= 1
    assert watched.list_ownership() == []


def test_a_deletion_ends_in_time(watched: Any, proxy: Any, scope: Scope) -> None:
    watched.take("0", "a")
    watched.set(operation_timeout=0.5)
    proxy.on("DELETE").refuse(503, "ServerBusy")
    with pytest.raises(StoreUnavailableError):
        watched.call("delete_partition", *names(scope), "0")


def test_deletions_run_side_by_side(watched: Any, proxy: Any, scope: Scope) -> None:
    rows = [watched.proposal(str(number), "a") for number in range(16)]
    watched.claim_ownership(rows)
    watched.set(operation_timeout=LIMIT)
    proxy.on("DELETE").together(16)
    assert watched.call("delete_scope", *names(scope)) == 16
