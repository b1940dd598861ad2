"""History of a group on the page, and undo."""

import html
import re

import pytest

from eventhub_checkpoints.cli.records import RecordFiles
from operators import Site, ehcp
from pages import Visitor, hidden_fields, path_of


def rewound(operator: Visitor, site: Site, query: str = "to=earliest&partitions=0,1") -> str:
    """Rewind the group, and return the page with the result."""
    path = path_of(site.scope, "rewind")
    answer = operator.client.post(path, data=hidden_fields(operator.text(f"{path}?{query}")))
    assert answer.status_code == 200
    return html.unescape(answer.text)


def test_a_rewind_is_undone_from_its_page(fresh_operator: Visitor, fresh_site: Site) -> None:
    before = fresh_site.rows()
    [link] = re.findall('<a href="([^"]+)">Undo…</a>', rewound(fresh_operator, fresh_site))
    assert fresh_site.rows() != before
    plan = fresh_operator.text(link)
    assert "2 partitions would have the former position again" in plan
    assert "Restore 2 partitions" in plan
    assert ">restore<" in plan
    path = link.partition("?")[0]
    answer = fresh_operator.client.post(path, data=hidden_fields(plan))
    assert "Restored 2 partitions of " in answer.text
    assert fresh_site.rows() == before
    history = fresh_operator.text(path_of(fresh_site.scope, "history"))
    assert re.findall('data-name="State">([a-z]+)<', history) == ["done", "undone"]
    # An undo is undone like any other change.
    assert history.count(">Undo…<") == 1


def test_changes_of_commands_are_listed_and_undone(
    fresh_operator: Visitor, fresh_site: Site
) -> None:
    before = fresh_site.rows()
    assert ehcp("reset", "--to-latest", "--execute").exit_code == 0
    text = fresh_operator.text(path_of(fresh_site.scope, "history"))
    assert "<code>reset --to-latest</code>" in text
    [link] = re.findall('href="([^"]+)">Undo…<', text)
    plan = fresh_operator.text(html.unescape(link))
    fresh_operator.client.post(link.partition("?")[0], data=hidden_fields(plan))
    assert {id_: row[0] for id_, row in fresh_site.rows().items()} == {
        id_: row[0] for id_, row in before.items()
    }


def test_an_undo_is_refused_while_the_group_is_active(
    fresh_operator: Visitor, fresh_site: Site
) -> None:
    rewound(fresh_operator, fresh_site)
    present = fresh_site.rows()
    record = next(RecordFiles().records(fresh_site.scope)).path.name
    path = path_of(fresh_site.scope, "undo")
    fields = hidden_fields(fresh_operator.text(f"{path}?record={record}"))
    fresh_site.own("0")
    plan = fresh_operator.text(f"{path}?record={record}")
    assert "is active: " in plan
    assert "ehcp undo --force" in plan
    assert hidden_fields(plan) == {}
    answer = fresh_operator.client.post(path, data=fields)
    assert answer.status_code == 409
    assert fresh_site.rows() == present


def test_an_undo_does_not_overwrite_what_was_stored_since(
    fresh_operator: Visitor, fresh_site: Site
) -> None:
    rewound(fresh_operator, fresh_site)
    record = next(RecordFiles().records(fresh_site.scope)).path.name
    path = path_of(fresh_site.scope, "undo")
    fields = hidden_fields(fresh_operator.text(f"{path}?record={record}"))
    fresh_site.save("0", 3)
    plan = fresh_operator.text(f"{path}?record={record}")
    assert "positions of partitions 0 were stored since" in plan
    answer = fresh_operator.client.post(path, data=fields)
    assert answer.status_code == 409
    assert "were stored since" in answer.text
    assert fresh_site.rows()["0"][0] == 3


def test_an_undo_of_what_is_undone_has_nothing_to_restore(
    fresh_operator: Visitor, fresh_site: Site
) -> None:
    rewound(fresh_operator, fresh_site)
    record = next(RecordFiles().records(fresh_site.scope)).path.name
    assert ehcp("undo", "--execute").exit_code == 0
    path = path_of(fresh_site.scope, "undo")
    plan = fresh_operator.text(f"{path}?record={record}")
    assert "All partitions have their former positions" in plan
    fields = {"form_token": token_of(fresh_operator, fresh_site), "record": record}
    answer = fresh_operator.client.post(path, data=fields)
    assert answer.status_code == 409
    assert "nothing was changed" in answer.text


def token_of(operator: Visitor, site: Site) -> str:
    text = operator.text(f"{path_of(site.scope, 'rewind')}?to=latest&partitions=0")
    return hidden_fields(text)["form_token"]


def test_records_of_another_group_are_not_shown(fresh_operator: Visitor, fresh_site: Site) -> None:
    fresh_site.save("0", 3, "audit")
    assert ehcp("reset", "--to-latest", "--group", "audit", "--execute").exit_code == 0
    [record] = [each.path.name for each in RecordFiles().records()]
    assert "No change of this group is recorded" in fresh_operator.text(
        path_of(fresh_site.scope, "history")
    )
    path = path_of(fresh_site.scope, "undo")
    assert "no such record" in fresh_operator.text(f"{path}?record={record}", 404)


def test_earlier_checkpoints_of_all_partitions_are_shown(visitor: Visitor, site: Site) -> None:
    text = visitor.text(path_of(site.scope, "history"))
    assert set(re.findall(r'data-name="Partition"><a [^>]+>(\d)<', text)) == {"0", "1", "2"}


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("to=earliest", "36 events</strong> read again, "),
        ("to=latest", "14 events</strong> skipped, in 3 partitions"),
        ("to=shift&value=0&partitions=0", "Nothing to change"),
    ],
)
def test_a_preview_says_what_is_read_again_and_skipped(
    operator: Visitor, site: Site, query: str, words: str
) -> None:
    text = operator.text(f"{path_of(site.scope, 'rewind')}?{query}")
    assert words in text
    assert text.count('class="lane"><svg') == (1 if "partitions" in query else 4)
