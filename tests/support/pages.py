"""The page of `ehcp ui` as tests call it."""

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

from starlette.testclient import TestClient

from eventhub_checkpoints.cli.target import Target, read_target
from eventhub_checkpoints.cli.ui import polled_pages
from eventhub_checkpoints.operations import monitor
from eventhub_checkpoints.ui.pages import Pages
from eventhub_checkpoints.ui.server import LOCAL_NAMES
from waiting import LIMIT, eventually

PORT = 9879
BASE = f"http://127.0.0.1:{PORT}"


class Visitor:
    """Browser without scripts, admitted by the token.

    Args:
        pages: the pages.
        is_admitted: whether it opens the URL with the token.
    """

    def __init__(self, pages: Pages, *, is_admitted: bool = True) -> None:
        self.pages = pages
        application = pages.application(PORT, LOCAL_NAMES)
        self.client = TestClient(application, base_url=BASE, raise_server_exceptions=False)
        if is_admitted:
            assert self.client.get(f"/?token={pages.token}").status_code == 200

    def text(self, path: str, status: int = 200) -> str:
        """Return a page."""
        answer = self.client.get(path)
        assert answer.status_code == status, answer.text
        return answer.text

    def wait_known(self, path: str, words: str) -> str:
        """Return a page once it shows some words."""

        def known() -> str | None:
            return text if words in (text := self.text(path)) else None

        return str(eventually(known))


def path_of(scope: Any, *rest: str) -> str:
    """Return the path of a group."""
    return "/".join(["/groups", *(quote(name, safe="") for name in (*scope, *rest))])


def hidden_fields(text: str) -> dict[str, str]:
    """Return the hidden fields of the form that changes something."""
    form = text.partition('<form method="post"')[2].partition("</form>")[0]
    pattern = r'<input type="hidden" name="(\w+)" value="([^"]*)">'
    return {name: value.replace("&#34;", '"') for name, value in re.findall(pattern, form)}


def target() -> Target:
    """Return the target that the environment names."""
    options = dict.fromkeys(("group", "credential", "expires_after", "timeout"))
    return read_target(
        profile=None, store=os.environ["EHCP_STORE"], hub=os.environ["EHCP_HUB"], **options
    )


@contextmanager
def opened(*targets: Target, **options: Any) -> Iterator[Pages]:
    """Poll groups, and return their pages; a poll of a busy machine may take its time."""
    with ExitStack() as stack, patch.object(monitor, "FRESH_SECONDS", LIMIT):
        yield polled_pages(targets or (target(),), stack, **{"interval": 0.3, **options})
