"""`ehcp ui` as a process: the URL that it prints, its options, and its end."""

import importlib.util
import os
import re
import signal
import sys
import urllib.error
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from eventhub_checkpoints.cli.demo.children import Child
from eventhub_checkpoints.cli.ui import PACKAGES
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.ui.server import listen, names
from operators import Site, ehcp
from waiting import LIMIT


@pytest.mark.waits
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_the_printed_url_admits_and_a_signal_ends_it(
    site: Site, tmp_path: Path, ending: signal.Signals
) -> None:
    log = tmp_path / "ui.log"
    command = [sys.executable, "-m", "eventhub_checkpoints.cli", "ui", "--port", "0"]
    child = Child(
        [*command, "--interval", "0.3"],
        log=log,
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        url = child.wait_ready(lambda: re.search(r"^http\S+", log.read_text()), LIMIT)[0]
        assert url.startswith("http://127.0.0.1:")
        with pytest.raises(urllib.error.HTTPError, match="403") as refused:
            urllib.request.urlopen(url.partition("?")[0], timeout=LIMIT)
        refused.value.close()
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        with browser.open(url, timeout=LIMIT) as answer:
            assert "Consumer groups" in answer.read().decode()
            assert answer.headers["Server"] is None
        token = url.partition("token=")[2]
        os.kill(child.pid, ending)
        child.wait_ready(lambda: child.poll() is not None, LIMIT)
    finally:
        child.kill()
    # The line with the URL is all that it printed.
    assert log.read_text().strip() == url
    assert log.read_text().count(token) == 1


def test_a_port_that_is_taken_is_one_sentence(site: Site) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])
        result = ehcp("ui", "--port", port)
    assert isinstance(result.exception, ConfigurationError)
    assert f"port {port} of 127.0.0.1 is not available" in str(result.exception)


def test_the_names_of_the_host() -> None:
    assert names("192.0.2.1", ()) == ["127.0.0.1", "localhost", "[::1]", "192.0.2.1"]
    assert names("0.0.0.0", ["ops.example"])[-1] == "ops.example"
    assert "0.0.0.0" not in names("0.0.0.0", ())
    assert names("2001:db8::1", ())[-1] == "[2001:db8::1]"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_missing_package_is_one_sentence(
    site: Site, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    find = importlib.util.find_spec

    def missing(name: str, *rest: str) -> object:
        return None if name == package else find(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", missing)
    message = str(ehcp("ui").exception)
    assert message.startswith(f"ehcp ui needs {package}: ")
    assert "eventhub-checkpoints[cli,ui]" in message
