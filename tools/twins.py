"""Derive the sync shells from the async ones, or check that they are derived.

    python tools/twins.py          write the sync files
    python tools/twins.py --check  fail, with a diff, where one is not what would be written

The async file is edited; the sync one is the same text without `async` and `await`, with the few
renames below. A rename that is never used is an error: the map must not outlive its reason.
"""

import argparse
import difflib
import io
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "eventhub_checkpoints"
DERIVED = [
    "_arrow_batches.py",
    "_asking.py",
    "_blob_abilities.py",
    "_blob_requests.py",
    "_cassandra_requests.py",
    "_cassandra_schema.py",
    "_checkpointing.py",
    "_claim.py",
    "_claims.py",
    "_claiming.py",
    "_handling.py",
    "_hooks.py",
    "_keeping.py",
    "_partition.py",
    "_processing.py",
    "_redis_requests.py",
    "_saved.py",
    "_saving.py",
    "_session.py",
    "_starts.py",
    "_steering.py",
    "_sql_calls.py",
    "_sql_database.py",
    "_sql_transactions.py",
    "_vetting.py",
    "_work.py",
    "_writing.py",
    "abilities.py",
    "base.py",
    "blob.py",
    "cassandra.py",
    "checkpointer.py",
    "coalescing.py",
    "memory.py",
    "processor.py",
    "redis.py",
    "sql.py",
]
RENAMED = {
    "async": "",
    "await": "",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "StopAsyncIteration": "StopIteration",
    "Awaitable[T]": "T",
    "Awaitable[None]": "None",
    "eventhub_checkpoints.aio": "eventhub_checkpoints",
    "azure.eventhub.aio": "azure.eventhub",
    "azure.storage.blob.aio": "azure.storage.blob",
    "redis.asyncio": "redis",
    '"azure.identity.aio"': '"azure.identity"',
}
LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT}


def tokens(text: str) -> list[tokenize.TokenInfo]:
    """The tokens of a text that say something."""
    found = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token for token in found if token.type not in LAYOUT and token.string]


PATTERNS = {key: [token.string for token in tokens(key)] for key in RENAMED}


def edits(text: str, used: set[str]) -> Iterator[tuple[int, int, int, str]]:
    """Line, start, end and new text of everything that is spelled differently in sync."""
    found = tokens(text)
    words = [token.string for token in found]
    for at, token in enumerate(found):
        for key, pattern in PATTERNS.items():
            if words[at : at + len(pattern)] == pattern:
                used.add(key)
                line, start = token.start
                end = found[at + len(pattern) - 1].end[1]
                yield line, start, end + (not RENAMED[key]), RENAMED[key]


def derive(name: str, used: set[str]) -> str:
    """The sync text of one file."""
    text = (PACKAGE / "aio" / name).read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    for line, start, end, new in sorted(edits(text, used), reverse=True):
        lines[line - 1] = lines[line - 1][:start] + new + lines[line - 1][end:]
    header = f"# Derived from aio/{name} by tools/twins.py; edit that file.\n"
    return formatted(header + "".join(lines), PACKAGE / name)


def formatted(text: str, path: Path) -> str:
    """Without the imports that only the async text needs, sorted, and laid out anew."""
    for step in (["check", "--select", "I,F401", "--fix", "--quiet"], ["format", "--quiet"]):
        command = [sys.executable, "-m", "ruff", *step, "--stdin-filename", str(path), "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        text = done.stdout
    return text


def difference(path: Path, text: str) -> str:
    """What would change in a file; empty where nothing would."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    names = (f"{path.name} as committed", f"{path.name} as derived")
    return "".join(
        difflib.unified_diff(old.splitlines(keepends=True), text.splitlines(keepends=True), *names)
    )


def main(arguments: list[str] | None = None) -> int:
    """Write or check every derived file; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    check = parser.parse_args(arguments).check
    used: set[str] = set()
    texts = {PACKAGE / name: derive(name, used) for name in DERIVED}
    if unused := RENAMED.keys() - used:
        print(f"renames that nothing needs: {', '.join(sorted(unused))}")
        return 1
    changes = {path: difference(path, text) for path, text in texts.items()}
    if check:
        print("".join(changes.values()), end="")
        return int(any(changes.values()))
    for path, text in texts.items():
        if changes[path]:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(PACKAGE)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
