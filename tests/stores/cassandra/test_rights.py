"""A role with the rights that the docs page names, and no other; who is not let in."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backends import ServerMissingError
from backends.cassandra import Cassandra, Keyspace
from eventhub_checkpoints import StoreAccessError
from eventhub_checkpoints.conformance.clients import Client
from page_blocks import blocks

# A second server, which asks for names: it takes half a minute to start. Who has which rights is
# decided there, whatever the variant of the store.
pytestmark = pytest.mark.long
SYNC, AIO = (pytest.mark.parametrize("variant", [variant]) for variant in ("sync", "aio"))

PAGE = Path(__file__).resolve().parents[3] / "docs/reference/cassandra.md"
PASSWORD = "not to be seen"
Make = Callable[..., Client]


@dataclass
class Guarded:
    """A keyspace with tables on a server that asks for names, and a role of its own."""

    place: Keyspace
    server: Cassandra
    role: str

    def settings(self, **others: Any) -> dict[str, Any]:
        return {
            "contact_points": [("127.0.0.1", self.server.port)],
            "namespace": self.place.keyspace,
            "username": self.role,
            "password": PASSWORD,
            **others,
        }

    def grant(self, right: str) -> None:
        self.server.session.execute(f"GRANT {right} TO {self.role}")


@pytest.fixture(scope="module")
def with_roles() -> Iterator[Cassandra]:
    try:
        with Cassandra(roles=True) as running:
            yield running
    except ServerMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def guarded(with_roles: Cassandra) -> Iterator[Guarded]:
    with with_roles.place() as place:
        role = f"role_{uuid.uuid4().hex}"
        with_roles.session.execute(
            f"CREATE ROLE {role} WITH PASSWORD = '{PASSWORD}' AND LOGIN = true"
        )
        yield Guarded(place, with_roles, role)


def granted_on_the_page(guarded: Guarded) -> list[str]:
    """The statements of the page's block that grants rights, for this role and keyspace."""
    text = next(block.text for block in blocks(PAGE) if "GRANT" in block.text)
    text = text.replace("eventhub_checkpoints", guarded.place.keyspace)
    text = text.replace("consumer_role", guarded.role)
    return [one.strip() for one in text.split(";") if "GRANT" in one]


@AIO
def test_the_rights_of_the_page_are_enough(guarded: Guarded, client: Make) -> None:
    for statement in granted_on_the_page(guarded):
        guarded.server.session.execute(statement)
    made = client(**guarded.settings())
    won = made.take("0", "a")
    won = made.take("0", "a", won["etag"])
    made.save("0", 7)
    made.save("0", 8)
    made.save("0", 3, force=True)
    made.call("verify")
    made.release(won)
    names = made.scope.as_dict().values()
    assert made.scope.folded in made.call("list_scopes")
    assert made.call("delete_scope", *names) == 2
    # Everything is there, so a consumer that would create it needs no more rights.
    client(**guarded.settings(create_keyspace=True)).list_ownership()


@SYNC
@pytest.mark.parametrize("left_out", [0, 1, 2])
def test_no_right_of_the_page_is_needless(guarded: Guarded, client: Make, left_out: int) -> None:
    statements = granted_on_the_page(guarded)
    assert len(statements) == 3
    for number, statement in enumerate(statements):
        if number != left_out:
            guarded.server.session.execute(statement)
    made = client(**guarded.settings())

    def use_both_tables() -> None:
        made.take("0", "a")
        made.save("0", 7)

    with pytest.raises(StoreAccessError, match=r"no (SELECT|MODIFY) permission") as refused:
        use_both_tables()
    assert guarded.role in str(refused.value)


@AIO
def test_a_role_that_may_create_creates_the_tables(guarded: Guarded, client: Make) -> None:
    with guarded.server.place() as other:
        other.vanish()
        made = client(**guarded.settings(namespace=other.keyspace, create_keyspace=True))
        with pytest.raises(StoreAccessError, match="CREATE"):
            made.list_ownership()
        guarded.grant("CREATE ON ALL KEYSPACES")
        made.take("0", "a")


@SYNC
@pytest.mark.parametrize("password", ["wrong-secret", None])
def test_who_is_not_let_in_is_told_so_without_the_password(
    guarded: Guarded, client: Make, password: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    role = guarded.role if password else None
    made = client(**guarded.settings(username=role, password=password))
    with pytest.raises(StoreAccessError, match="user and password were refused") as refused:
        made.list_ownership()
    assert "wrong-secret" not in f"{refused.value!r} {refused.value.__cause__!r} {caplog.text}"
