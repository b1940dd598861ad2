"""Dead letters on the page, and sending them back."""

import gc
import html
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dead_letter import write_dead_letters
from eventhub_checkpoints.dead_letters import DeadLetterFile
from eventhub_checkpoints.errors import ConfigurationError
from operators import Site
from pages import Visitor, hidden_fields, opened, path_of, target

# The client leaves sockets to the garbage collector when a hub refuses its connections.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

ORIGIN = {"Origin": "http://127.0.0.1:9879"}


def page(visitor: Visitor, site: Site, query: str = "") -> str:
    return html.unescape(
        visitor.text(f"{path_of(site.scope, 'dead-letters')}?live=off{query}").replace("&lt;", "<")
    )


def ids_in(text: str) -> list[str]:
    return re.findall('<details id="letter-([0-9a-f]+)"', text)


@pytest.fixture
def file(fresh_site: Site, tmp_path: Path) -> Path:
    path = tmp_path / "letters.jsonl"
    write_dead_letters(path, fresh_site.scope)
    return path


@pytest.fixture
def redriver(file: Path) -> Iterator[Visitor]:
    limited = replace(target(), timeout=2.0)
    with opened(limited, allow_writes=True, dead_letters=str(file)) as pages:
        yield Visitor(pages)
    gc.collect()


def newest(site: Site) -> int:
    """Return the number of the newest event of all partitions together."""
    return sum(site.hub.partition_properties("orders", id_).last_sequence_number for id_ in "0123")


def test_only_dead_letters_of_the_group_are_shown(visitor: Visitor, site: Site) -> None:
    text = page(visitor, site)
    assert len(ids_in(text)) == 3
    assert "3 dead letters." in text
    assert "2 more are of other groups" in text
    assert "<b>KeyError</b> cannot read order 3" in text
    event = path_of(site.scope, "partitions", "0", "events")
    assert f'href="{event}?by=number&at=3">3 of partition 0<' in text
    assert '<span class="sequence">3 <small>partition 0</small>' in text
    assert f"<dt>Id</dt><dd>{ids_in(text)[0]}</dd>" in text


def test_bodies_are_shown_as_those_of_events(visitor: Visitor, site: Site) -> None:
    text = visitor.text(f"{path_of(site.scope, 'dead-letters')}?live=off")
    assert '<span class="key">order</span> <span class="number">3</span>' in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<script>alert" not in text
    assert "not UTF-8" in text


@pytest.mark.parametrize(
    ("query", "number"), [("&error=KEYERROR", 1), ("&error=absent", 0), ("&partition=7", 0)]
)
def test_they_are_filtered(visitor: Visitor, site: Site, query: str, number: int) -> None:
    text = page(visitor, site, query)
    assert len(ids_in(text)) == number
    assert ("clear the filter" in text) is (number == 0)
    assert text.count("<mark>KeyError</mark>") == number


def test_what_chose_them_is_marked_across_type_and_message(visitor: Visitor, site: Site) -> None:
    text = page(visitor, site, "&error=keyerror:+CANNOT")
    assert len(ids_in(text)) == 1
    assert text.count("<mark>KeyError: cannot</mark> read order 3</span>") == 1
    assert "<dt>Error</dt><dd>KeyError: cannot read order 3</dd>" in text


def test_the_chosen_are_sent_back_once(redriver: Visitor, fresh_site: Site, file: Path) -> None:
    before = newest(fresh_site)
    text = page(redriver, fresh_site)
    fields = hidden_fields(text)
    chosen = ids_in(text)[0]
    path = path_of(fresh_site.scope, "dead-letters")
    form = {"form_token": fields["form_token"], "id": chosen, "which": "chosen"}
    answer = redriver.client.post(path, data=form, headers=ORIGIN)
    assert "Sent 1 dead letter to " in answer.text
    assert newest(fresh_site) == before + 1
    redriven = [each for each in DeadLetterFile(file).dead_letters() if each.redriven_time]
    assert [each.dead_letter.id for each in redriven] == [chosen]
    text = page(redriver, fresh_site)
    assert chosen not in ids_in(text)
    assert "1 more were redriven" in text
    text = page(redriver, fresh_site, "&show=all")
    assert chosen in ids_in(text)
    assert f'value="{chosen}"' not in text
    again = redriver.client.post(path, data=form, headers=ORIGIN)
    assert again.status_code == 409
    assert "was redriven to" in again.text
    assert newest(fresh_site) == before + 1


def test_all_that_are_shown_are_sent_back(redriver: Visitor, fresh_site: Site) -> None:
    before = newest(fresh_site)
    text = page(redriver, fresh_site)
    assert ">Redrive all 3 that are shown<" in text
    form = {
        "form_token": hidden_fields(text)["form_token"],
        "shown": ids_in(text),
        "which": "all",
    }
    path = path_of(fresh_site.scope, "dead-letters")
    answer = redriver.client.post(path, data=form, headers=ORIGIN)
    assert "Sent 3 dead letters to " in answer.text
    assert newest(fresh_site) == before + 3
    assert "Nothing waits here" in page(redriver, fresh_site)


@pytest.mark.parametrize("ids", [[], ["absent"], ["0"] * 101])
def test_a_choice_that_is_none_is_refused(
    redriver: Visitor, fresh_site: Site, ids: list[str]
) -> None:
    before = newest(fresh_site)
    token = hidden_fields(page(redriver, fresh_site))["form_token"]
    path = path_of(fresh_site.scope, "dead-letters")
    form = {"form_token": token, "id": ids, "which": "chosen"}
    answer = redriver.client.post(path, data=form, headers=ORIGIN)
    assert answer.status_code == 409
    assert 'role="alert"' in answer.text
    assert newest(fresh_site) == before


def test_a_hub_that_is_gone_is_one_sentence(redriver: Visitor, fresh_site: Site) -> None:
    text = page(redriver, fresh_site)
    form = {"form_token": hidden_fields(text)["form_token"], "shown": ids_in(text), "which": "all"}
    fresh_site.hub.stop()
    path = path_of(fresh_site.scope, "dead-letters")
    answer = redriver.client.post(path, data=form, headers=ORIGIN)
    assert answer.status_code == 409
    assert "did not accept" in answer.text


def test_without_a_source_the_page_says_how_to_name_one(
    fresh_visitor: Visitor, fresh_site: Site
) -> None:
    text = page(fresh_visitor, fresh_site)
    assert "ehcp ui --dead-letters SOURCE" in text
    assert ids_in(text) == []


def test_a_source_that_is_none_is_refused_at_the_start(fresh_site: Site) -> None:
    with pytest.raises(ConfigurationError, match="--dead-letters is"), opened(dead_letters="x://y"):
        pass


def test_a_source_that_cannot_be_read_is_one_sentence(
    redriver: Visitor, fresh_site: Site, file: Path
) -> None:
    file.write_text("no dead letter\n")
    assert 'role="alert"' in page(redriver, fresh_site)
