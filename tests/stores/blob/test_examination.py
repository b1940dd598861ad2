"""What the Blob store shows for diagnosis: names in another case, and settings of the account."""

from typing import Any

import pytest

from eventhub_checkpoints.errors import StoreAccessError

SETTINGS = {"hierarchical_namespace": False, "versioning": False, "soft_delete": False}


@pytest.fixture
def has_hns(raw: Any) -> bool:
    """Whether the driver shows the kind of namespace; azure-storage-blob 12.18.0 does not."""
    return "is_hns_enabled" in raw.get_account_information()


def test_rows_under_names_in_another_case_are_shown(
    variant: Any, client: Any, blob_container: Any, raw: Any, scope: Any
) -> None:
    typed = variant.open(blob_container, name_case="as-typed")
    typed.take("0", "a")
    typed.save("1", 7)
    client.take("0", "b")
    raw.upload_blob(f"{scope}x/ownership/0", b"", metadata={"ownerid": "of another group"})
    [spelling] = client.call("examine", *scope).spellings
    assert spelling.scope == scope
    assert [row.owner_id for row in spelling.ownerships.rows] == ["a"]
    assert [row.sequence_number for row in spelling.checkpoints.rows] == [7]
    [spelling] = typed.call("examine", *scope).spellings
    assert spelling.scope == scope.folded
    assert [row.owner_id for row in spelling.ownerships.rows] == ["b"]


def test_settings_that_checkpoints_should_not_have_are_shown(
    watched: Any, proxy: Any, has_hns: bool
) -> None:
    names = tuple(watched.scope)
    settings = {**SETTINGS, "hierarchical_namespace": False if has_hns else None}
    # Without the row that `verify` writes, no blob shows whether there are versions.
    assert watched.call("examine", *names).settings == {**settings, "versioning": None}
    watched.call("verify")
    assert watched.call("examine", *names).settings == settings
    proxy.rewrite("x-ms-is-hns-enabled", "true")
    proxy.rewrite("x-ms-version-id", "2026-11-23T10:00:00.0000000Z")
    found = watched.call("examine", *names).settings
    kind = True if has_hns else None
    assert found == {**settings, "hierarchical_namespace": kind, "versioning": True}


def test_settings_that_may_not_be_read_are_unknown(
    variant: Any, client: Any, blob_container: Any, sas: Any
) -> None:
    client.call("verify")
    url = f"{blob_container.url}?{sas('rl')}"
    settings = variant.client(variant.open_store(url)).call("examine", *client.scope).settings
    assert settings["soft_delete"] is None
    assert settings["versioning"] is False


def test_a_client_of_the_callers_shows_what_its_container_shows(
    variant: Any, client: Any, blob_container: Any, has_hns: bool
) -> None:
    client.call("verify")
    text = blob_container.connection_string
    ready = variant.driver.from_connection_string(text, blob_container.name)
    store = variant.client(variant.store(container_client=ready))
    found = store.call("examine", *client.scope).settings
    kind = False if has_hns else None
    assert found == {**SETTINGS, "hierarchical_namespace": kind, "soft_delete": None}
    variant.finished(ready.close())


def test_rows_that_may_not_be_listed_are_an_error(
    variant: Any, client: Any, blob_container: Any, sas: Any
) -> None:
    store = variant.client(variant.open_store(f"{blob_container.url}?{sas('r')}"))
    with pytest.raises(StoreAccessError, match="List on the container"):
        store.call("examine", *client.scope)
