"""Mistakes of an operator: each is answered by one sentence, and changes nothing."""

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from operators import Site, ended, quiet_client

# The client leaves the sockets of links that the hub has ended to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

FAILED, WRONG, UNKNOWN, REFUSED = 1, 2, 3, 4
"""Exit statuses."""
UNREACHABLE = "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=n;SharedAccessKey=k;EntityPath=orders"


class Mistake(NamedTuple):
    """Command line with a mistake, and what the operator reads.

    Attributes:
        line: the command; FILE, HUB and STORE in it are replaced.
        said: part of the sentence.
        content: of FILE; None if it does not exist.
    """

    line: str
    said: str
    status: int = WRONG
    content: str | None = None


POSITIONS = '{"format": "eventhub-checkpoints/positions", "version": 1, "groups": [%s]}'
ONE_POSITION = POSITIONS % (
    '{"fully_qualified_namespace": "ns", "eventhub_name": "payments", "consumer_group": "busy", '
    '"checkpoints": [{"partition_id": "0", "sequence_number": 15, "offset": "640"}]}'
)

SAMPLE = (
    '[{"scope": ["ns", "orders", "busy"], "time": 5, "foreign": [], '
    '"partitions": [{"begin": "0"}]}]'
)

STORES_HUBS_AND_GROUPS = [
    Mistake("lag --store ''", "the store URL is empty"),
    Mistake("lag --store checkpoints.db", "did you mean sqlite:///checkpoints.db?"),
    Mistake(
        "lag --store sqlite:////nowhere/a.db", "the file cannot be opened; does its folder", FAILED
    ),
    Mistake("lag --store sqlite:///FILE", "the file does not exist: check its name", FAILED),
    Mistake(
        "groups --store postgresql://u:p@127.0.0.1:1/x --timeout 0.5",
        "connection was refused",
        FAILED,
    ),
    Mistake("lag --hub orders", "the hub is 'orders'; expected a connection string"),
    Mistake(
        f"lag --hub '{UNREACHABLE.replace('sb://', '')}'",
        "has an Endpoint that does not begin with sb://",
    ),
    Mistake(f"lag --hub '{UNREACHABLE.replace(';', '; ')}'", "has a blank or a line break beside"),
    Mistake(
        "lag --hub 'HostName=a.azure-devices.net;SharedAccessKeyName=n;SharedAccessKey=k'",
        "is that of an IoT Hub itself",
    ),
    Mistake("lag --hub Endpoint=sb://ns", "the connection string has no SharedAccessKeyName"),
    Mistake(
        f"lag --hub '{UNREACHABLE}' --timeout 0.5",
        "the connection was refused: check host and port",
        FAILED,
    ),
    Mistake("lag --hub HUB'x' --timeout 0.5", "has no event hub 'ordersx'"),
    Mistake(
        "lag --hub ns.servicebus.chinacloudapi.cn",
        "expected a connection string with EntityPath, or NAMESPACE.servicebus.chinacloudapi.cn/H",
    ),
    Mistake(
        "lag --store https://acct.queue.core.usgovcloudapi.net/positions",
        "the account's queues; expected that of Blob Storage, https://ACCOUNT.blob.core.usgovcloudapi.net",
    ),
    Mistake(
        "lag --store 'https://acct.blob.core.windows.net/positions?prefix=a//b'",
        "prefix is 'a//b'; expected names of ASCII letters, digits, '.', '_' and '-'",
    ),
    Mistake(
        "lag --store 'postgresql://me@h.postgres.database.usgovcloudapi.net/db?audience=gov'",
        "audience is 'gov'; expected the URI of a service, such as https://ossrdbms-aad.database.",
    ),
    Mistake("lag --hub ns/orders --credential Nothing", "the credential is not a name"),
    Mistake("lag --hub ns/orders", "needs its package: python -m pip install azure-identity"),
    Mistake("lag --group ' '", "consumer_group is ' '"),
    Mistake("lag --group a/b", "consumer_group is 'a/b'"),
    Mistake("reset --to-latest --group \udc80", "text that could be decoded"),
    Mistake("peek 0 --group absent", "has no checkpoint"),
    Mistake("copy --to-group new --group absent", "absent has no positions to copy"),
    *(
        Mistake(f"{words} --store memory:mistakes", "memory:mistakes exists in one process only")
        for words in (
            *("groups", "lag", "history", "serve --port 0", "ui --port 0", "delete"),
            *("reset --to-latest", "reset --to-latest --execute", "copy --to-group new"),
            "mirror --to-store STORE --once",
        )
    ),
    Mistake("doctor --store memory:", "memory: exists in one process only", UNKNOWN),
    Mistake("import FILE --store memory:", "in one process only", content="orders,0,1\n"),
    Mistake("move --to-store memory:", "memory: exists in one process only"),
    Mistake("copy --to-store memory:mistakes", "memory:mistakes exists in one process only"),
    Mistake("serve --port 0 -g a -g A", "is named twice"),
    *(
        Mistake(f"{verb} --port 0 --host {host}", said)
        for verb in ("serve", "ui")
        for host, said in {
            "''": "--host is ''; expected an address to listen on, such as 127.0.0.1, or",
            "\udc80": "is not available (this is no address); choose another",
        }.items()
    ),
    Mistake("mirror", "name the other store: pass --to-store URL, set EHCP_TO_STORE, or"),
    Mistake("mirror --to-store STORE", "must name a store other than the source"),
    Mistake("move --to-store orders.db", "'orders.db' names no store"),
]
PROFILES = [
    Mistake("lag --profile prod", "cannot be read (No such file or directory); create it"),
    Mistake("lag --profile prod", "it has: production", content="[profiles.production]"),
    Mistake("lag --profile prod", "is not TOML", content="[profiles"),
    Mistake(
        "lag --profile prod", "the key 'hubb'; expected hub", content="[profiles.prod]\nhubb=1"
    ),
    Mistake("lag --profile prod", "is not TOML: Exceeds", content=f"timeout = {'9' * 5000}"),
    Mistake("lag --profile prod", "is not TOML: maximum", content=f"a = {'[' * 5000}"),
    Mistake("lag --profile prod", "is True; expected sec", content="[profiles.prod]\ntimeout=true"),
    Mistake("lag --profile prod", "is 'a'; expected", content="[profiles.prod]\ntimeout='a'"),
    Mistake("lag --profile prod", "expected a string", content="[profiles.prod]\ngroup=1"),
]
POSITIONS_AND_PARTITIONS = [
    Mistake("reset --to-latest --partitions 99", "has no partition '99'; it has 0, 1, 2, 3"),
    Mistake("reset --to-latest --partitions a,b", "expected decimal numbers"),
    Mistake(
        "history --partitions 1-3", "--partitions holds '1-3'; expected decimal numbers, such as 0"
    ),
    Mistake("reset --to-latest --partitions ''", "expected decimal numbers"),
    Mistake("reset --shift-by -3", "partition 3 has no checkpoint"),
    Mistake("reset --to-datetime yesterday", "the time is 'yesterday'; expected a time in ISO"),
    Mistake("reset --by-duration 2", "the duration is '2'; expected a duration with its unit"),
    Mistake("reset --by-duration P1M", "such as 30s, 0.5m or PT30S, from 0s"),
    Mistake("reset --by-duration P999999999D", "or PT30S, from 0s to 1e+09s"),
    Mistake("reset --to-latest --hub orders", "the hub is 'orders'"),
    Mistake("delete --partitions 7", "has no row of partition 7"),
    Mistake("copy --to-group $default", "cannot be copied to itself"),
    Mistake("copy --to-group new --partitions 3", "partition 3 has no position to store"),
    Mistake("peek 7", "has no partition '7'; it has 0 to 3"),
    Mistake("peek 0 --sequence-number 99", "has no event 99: its newest one is 19"),
    Mistake("at noon", "the time is 'noon'; expected a time in ISO 8601"),
    Mistake("undo", "no recorded change of", FAILED),
    Mistake(
        "migrate --from kinesis --container https://a.blob.core.windows.net/c",
        "expected one of eph",
    ),
]
FILES = [
    Mistake("reset --from-file FILE", "cannot be read (No such file or directory)"),
    Mistake("reset --from-file ''", "the current folder cannot be read"),
    Mistake("reset --from-file FILE", "has no line for", content=""),
    Mistake("reset --from-file FILE", "has no line for", content="other,orders,0,1\n"),
    Mistake(
        "reset --from-file FILE",
        "line 1 is 'orders,0'; expected a file of ehcp export, or lines",
        content="orders,0\n",
    ),
    Mistake("reset --from-file FILE", "line 1 is 'orders,0,-5'", content="orders,0,-5\n"),
    Mistake(
        "reset --from-file FILE",
        "line 2 is of topic 'payments'; the hub is 'orders'",
        content="orders,0,1\npayments,1,5\n",
    ),
    Mistake(
        "reset --from-file FILE",
        "line 2 is the second line for partition 0",
        content="orders,0,1\norders,0,5\n",
    ),
    Mistake("reset --from-file FILE", "has no partition '8'", content="orders,8,1\n"),
    Mistake("reset --to-latest --export /nowhere/plan.csv", "cannot be written"),
    Mistake("export /nowhere/positions.json", "cannot be written"),
    Mistake("export --all-groups --format kafka", "holds one group"),
    Mistake("undo FILE", "cannot be read"),
    Mistake("undo FILE", "is not a file of positions", content="{}"),
    Mistake("undo FILE", "expected one of the records that ehcp undo --list", content="{}"),
    Mistake("undo FILE", "expected one of the records that ehcp undo --list", content="{"),
    Mistake(f"undo {'x' * 5000}", "cannot be read (File name too long)"),
    Mistake(f"dead-letters list --from ./{'x' * 5000}", "could not be read", status=FAILED),
    Mistake("import FILE", "cannot be read"),
    Mistake("import FILE", "has no line for", content=""),
    Mistake("import FILE", "is not JSON", content="{"),
    Mistake("import FILE", "is not a file of positions", content="{}"),
    Mistake("import FILE", "has version 2", content=(POSITIONS % "").replace(": 1", ": 2")),
    Mistake("import FILE", "but of: ns/payments/busy", content=ONE_POSITION),
    Mistake("import FILE", "line 1 is 'a,b'; expected a file of ehcp export", content="a,b\n"),
    Mistake("import FILE", "is 'topic,partition,offset'", content="topic,partition,offset\n"),
]
ACTIVE = [
    Mistake(
        "reset --to-latest -g busy --expires-after 1d",
        "'consumer-7' (partitions 0); stop its",
        REFUSED,
    ),
    Mistake("delete -g busy --expires-after 1d", "would store their rows again", REFUSED),
    Mistake("copy --to-group busy --expires-after 1d", "busy is active", REFUSED),
    Mistake("import FILE -g busy --expires-after 1d", "busy is active", REFUSED, "orders,0,1\n"),
]
VERDICTS = [
    Mistake("check --store sqlite:///FILE", "the file does not exist", UNKNOWN),
    Mistake("check --state-file FILE", "is not a state file of ehcp check", UNKNOWN, "{"),
    Mistake("check --state-file FILE", "is not a state file of ehcp", UNKNOWN, "[" * 100_000),
    Mistake("check --state-file FILE", "state file of ehcp check (TypeError)", UNKNOWN, SAMPLE),
    Mistake("check --profile prod", "cannot be read", UNKNOWN),
    Mistake("doctor --execute", "carries out the fixes of --fix: pass both", UNKNOWN),
]
USAGE = [
    Mistake(line, said)
    for line, said in {
        "rest": "No such command 'rest'",
        "lag --grup a": "No such option",
        "lag --group": "requires an argument",
        "lag --timeout 0": "--timeout",
        "lag --expires-after -1": "--expires-after",
        "lag --watch soon": "--watch",
        "check --samples 0": "--samples",
        "check --every 0": "--every",
        "history --limit 0": "--limit",
        "peek": "Missing argument 'PARTITION'",
        "peek 0 --count 0": "--count",
        f"peek 0 --count {'9' * 20}": "expected at most 9223372036854775807",
        "reset": "pass exactly one of",
        "reset --to-earliest --to-latest": "pass exactly one of",
        "reset --to-sequence-number -1": "--to-sequence-number",
        "reset --shift-by two": "--shift-by",
        "reset --to-latest --missing newest": "'newest'",
        "import": "Missing argument",
        "copy": "pass --to-store, --to-hub or --to-group",
        "copy --all-groups --to-group new": "goes with --to-store only",
        "migrate": "Missing option '--from'",
        "mirror --every 0": "--every",
        "export --json --format csv": "pass one of them",
        "serve --port 99999": "--port",
        "lag -g a --group b": "it is named 2 times; this command takes",
        "reset --to-latest --hub a --hub b": "it is named 2 times; this command takes",
        "import FILE --partitions 0 --partitions 1": "'--partitions': it is named 2 times",
        "dead-letters list --through a --through b": "it is named 2 times; this command takes",
    }.items()
]
MISTAKES = [
    *STORES_HUBS_AND_GROUPS,
    *PROFILES,
    *POSITIONS_AND_PARTITIONS,
    *FILES,
    *ACTIVE,
    *VERDICTS,
    *USAGE,
]
EXECUTED = {"reset", "undo", "delete", "import", "copy", "mirror", "move", "migrate"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A group, and the group `busy` with a live consumer; no mistake changes them."""
    with (
        quiet_client(),
        pytest.MonkeyPatch.context() as patch,
        Site.opened(tmp_path_factory.mktemp("mistakes"), patch) as opened,
    ):
        busy = opened.scope._replace(consumer_group="busy")
        opened.save("0", 15, "busy")
        opened.store.claim_ownership(
            [{**busy.as_dict(), "partition_id": "0", "owner_id": "consumer-7"}]
        )
        patch.setitem(sys.modules, "azure.identity", None)
        yield opened


def state(site: Site) -> Any:
    """Return all rows of the store, and the names of the records."""
    rows = [
        row
        for scope in sorted(site.store.list_scopes())
        for row in [*site.store.list_checkpoints(*scope), *site.store.list_ownership(*scope)]
    ]
    records = Path(os.environ["EHCP_STATE_DIR"]).glob("*.json")
    # The time of an ownership is translated to this machine's clock at each list; the etag stays.
    return [{**row, "last_modified_time": None} for row in rows], sorted(records)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: each.line)
def test_a_mistake_is_one_sentence_and_changes_nothing(
    site, mistake, tmp_path, monkeypatch, capsys
) -> None:
    file = tmp_path / "file"
    if mistake.content is not None:
        file.write_text(mistake.content)
    monkeypatch.setenv("EHCP_CONFIG", str(file))
    monkeypatch.setenv("COLUMNS", "200")
    line = mistake.line
    places = {"FILE": str(file), "STORE": site.url, "HUB": f"'{site.connection_string}'"}
    for name, value in places.items():
        line = line.replace(name, value)
    words = shlex.split(line)
    if words[0] in EXECUTED:
        words.append("--execute")
    before = state(site)
    status, sentence = ended(words, monkeypatch)
    assert state(site) == before
    printed = capsys.readouterr()
    said = printed.err + sentence
    assert mistake.said in " ".join(said.replace("│", " ").split())
    assert (status, printed.out) == (mistake.status, "")
    if mistake not in USAGE:
        assert len(said.strip().splitlines()) == 1
