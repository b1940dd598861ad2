"""Derive the sync packages from the async ones, or check that they are derived.

    python tools/unasync.py          write every `_sync` folder
    python tools/unasync.py --check  fail, with a diff, if a file differs from the derived one

Edit the files in `_async`. Each file there is written to the neighbouring `_sync` folder, without
`async` and `await` and with the renames below, unless `_sync` has a file of that name that starts
with the mark of a hand-written one. An unused rename is an error.
"""

import argparse
import difflib
import io
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "eventhub_checkpoints"
HAND_WRITTEN = "# Not derived: "
"""First line prefix of a file in `_sync` that is not derived from its async counterpart."""
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
    "Awaitable[list[str]]": "list[str]",
    "Awaitable[int]": "int",
    "_async": "_sync",
    "eventhub_checkpoints.aio": "eventhub_checkpoints",
    "azure.eventhub.aio": "azure.eventhub",
    "azure.storage.blob.aio": "azure.storage.blob",
    "redis.asyncio": "redis",
    '"azure.identity.aio"': '"azure.identity"',
}
LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT}


def tokens(text: str) -> list[tokenize.TokenInfo]:
    """Return the tokens of a source text, without layout tokens."""
    found = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token for token in found if token.type not in LAYOUT and token.string]


PATTERNS = {key: [token.string for token in tokens(key)] for key in RENAMED}


def edits(text: str, used: set[str]) -> Iterator[tuple[int, int, int, str]]:
    """Yield line, start, end and new text of everything that differs in sync code."""
    found = tokens(text)
    words = [token.string for token in found]
    for at, token in enumerate(found):
        for key, pattern in PATTERNS.items():
            if words[at : at + len(pattern)] == pattern:
                used.add(key)
                line, start = token.start
                end = found[at + len(pattern) - 1].end[1]
                yield line, start, end + (not RENAMED[key]), RENAMED[key]


def derived(source: Path, used: set[str]) -> str:
    """Return the sync source of one async file, not formatted yet."""
    text = source.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    for line, start, end, new in sorted(edits(text, used), reverse=True):
        lines[line - 1] = lines[line - 1][:start] + new + lines[line - 1][end:]
    return f"# Derived from _async/{source.name} by tools/unasync.py; edit that file.\n" + "".join(
        lines
    )


def is_hand_written(path: Path) -> bool:
    """Return whether a sync file is not derived from its async counterpart."""
    return path.exists() and path.read_text(encoding="utf-8").startswith(HAND_WRITTEN)


def targets() -> dict[Path, Path]:
    """Return every file to be written, and the async file that it is derived from."""
    found = {}
    folders = PACKAGE, ROOT / "benchmarks", ROOT / "tools"
    for source in sorted(path for folder in folders for path in folder.rglob("_async/*.py")):
        target = source.parent.with_name("_sync") / source.name
        if source.name != "__init__.py" and not is_hand_written(target):
            found[target] = source
    return found


def laid_out(texts: dict[Path, str]) -> dict[Path, str]:
    """Remove the imports that only the async code needs, sort the others, and format all files."""
    with tempfile.TemporaryDirectory() as folder:
        copies = {path: Path(folder) / path.relative_to(ROOT) for path in texts}
        for path, copy in copies.items():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(texts[path], encoding="utf-8")
        config = ["--quiet", "--no-cache", "--config", str(ROOT / "pyproject.toml")]
        for step in (["check", "--select", "I,F401", "--fix"], ["format"]):
            command = [sys.executable, "-m", "ruff", *step, *config, "."]
            subprocess.run(command, cwd=folder, check=True)
        return {path: copy.read_text(encoding="utf-8") for path, copy in copies.items()}


def difference(path: Path, text: str) -> str:
    """Return what would change in a file as a diff; empty if nothing would."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    shown = path.relative_to(ROOT)
    names = (f"{shown} as committed", f"{shown} as derived")
    return "".join(
        difflib.unified_diff(old.splitlines(keepends=True), text.splitlines(keepends=True), *names)
    )


def main(arguments: list[str] | None = None) -> int:
    """Write or check every derived file; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    check = parser.parse_args(arguments).check
    used: set[str] = set()
    texts = laid_out({target: derived(source, used) for target, source in targets().items()})
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
            print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
