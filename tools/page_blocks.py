"""Code blocks of a Markdown page; runs the Python blocks as a reader would.

`python tools/page_blocks.py docs/tutorials/first-spark-job.md` runs the Python blocks of a page, in
order, in one namespace. Several pages share a process, and each has a namespace of its own. An HTML
comment on the line above a block marks special cases:

    <!-- not run: the reason -->      it cannot run here
    <!-- runs until Ctrl-C -->        it does not end by itself; it is sent Ctrl-C after it has
                                      printed, and must end without a traceback

Blocks in content tabs of one title share a namespace, such as those of all tabs "asyncio". It also
has the names that the blocks before them, outside of tabs, have defined. What is folded in
`<details>`, as GitHub has no tabs, is a program of its own.
"""

import re
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from waiting import LIMIT

FENCE = re.compile(r"^( *)(`{3,})\s*([\w-]*)[^`]*$")
COMMENT = re.compile(r"^ *<!--\s*(.*?)\s*-->$")
TAB = re.compile(r'^( *)===[!+]? "(.+)"$')
FOLDED = re.compile(r"^<details><summary>(.+)</summary>$")
UNFOLDED = "</details>"
NOT_RUN = "not run:"
UNTIL_CTRL_C = "runs until Ctrl-C"
GRACE_SECONDS = 0.5
"""After its first output, in which a block that wrongly ends by itself does so."""


@dataclass(frozen=True)
class Block:
    """Fenced block.

    Attributes:
        page: the file.
        line: of its first line of content, counted from 1.
        language: the word after the fence, or "".
        text: content between the fences.
        note: the HTML comment on the line above, or "".
        tab: title of the content tab or of the folded part in which it is, or "".
        is_folded: whether it is in a folded part, which shares no names with others.
    """

    page: Path
    line: int
    language: str
    text: str
    note: str
    tab: str
    is_folded: bool = False

    @property
    def place(self) -> str:
        """Page and line, in the format that editors accept."""
        return f"{self.page}:{self.line}"

    @property
    def runs(self) -> bool:
        """Return whether it is meant to run here."""
        return not self.note.startswith(NOT_RUN)

    @property
    def runs_until_ctrl_c(self) -> bool:
        """Return whether it runs until it is interrupted."""
        return self.note == UNTIL_CTRL_C


def blocks(page: Path) -> list[Block]:
    """Return all fenced blocks of a page, in order.

    Raises:
        ValueError: a block has no end.
    """
    lines = page.read_text().splitlines()
    found, at, tab, edge = [], 0, "", 0
    while at < len(lines):
        indented = len(lines[at]) - len(lines[at].lstrip()) > edge
        if opened := TAB.match(lines[at]):
            tab, edge = opened[2], len(opened[1])
        elif folded := FOLDED.match(lines[at]):
            tab, edge = folded[1], -1
        elif lines[at] == UNFOLDED or (lines[at].strip() and not indented):
            tab = ""
        if fence := FENCE.match(lines[at]):
            comment = COMMENT.match(lines[at - 1]) if at else None
            end = _closing(lines, at + 1, fence[2], page)
            text = "\n".join(line.removeprefix(fence[1]) for line in lines[at + 1 : end])
            note = comment[1] if comment else ""
            is_folded = bool(tab) and edge < 0
            found.append(Block(page, at + 2, fence[3], text, note, tab, is_folded))
            at = end
        at += 1
    return found


def _closing(lines: list[str], at: int, fence: str, page: Path) -> int:
    for number in range(at, len(lines)):
        if lines[number].strip() == fence:
            return number
    raise ValueError(f"{page}:{at}: this block has no end")


class CtrlC:
    """Sends Ctrl-C once the block has printed something; replaces standard output until then."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._printed = threading.Event()
        self._pressed = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._press, daemon=True)

    def write(self, text: str) -> int:
        """Write the text to the real output."""
        if text.strip():
            self._printed.set()
        return self._output.write(text)

    def flush(self) -> None:
        """Flush the real output."""
        self._output.flush()

    def _press(self) -> None:
        has_printed = self._printed.wait(LIMIT)
        if not self._ended.wait(GRACE_SECONDS):
            if has_printed:
                self._pressed.set()
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def run(self, code: Any, namespace: dict[str, Any]) -> None:
        """Run the block until Ctrl-C ends it.

        Raises:
            AssertionError: it ended by itself, or in a traceback, or printed nothing.
        """
        sys.stdout = self
        signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore SIGINT
        try:
            self._thread.start()
            exec(code, namespace)
        except KeyboardInterrupt:
            raise AssertionError("Ctrl-C ended it in a traceback") from None
        finally:
            self._ended.set()
            sys.stdout = self._output
        if not self._pressed.is_set():
            raise AssertionError(f"it ended before Ctrl-C, or was silent for {LIMIT:g} s")


def run(page: Path) -> None:
    """Run the page's Python blocks, in order, in one namespace and one for each title of a tab."""
    outside: dict[str, Any] = {"__name__": "__main__"}
    of_tabs: dict[str, dict[str, Any]] = {}
    for block in blocks(page):
        namespace = of_tabs.setdefault(block.tab, {}) if block.tab else outside
        for name, value in outside.items() if not block.is_folded else ():
            namespace.setdefault(name, value)
        if block.language == "python" and block.runs:
            # With as many empty lines above as on the page, tracebacks name the page's lines.
            code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
            if block.runs_until_ctrl_c:
                CtrlC(sys.stdout).run(code, namespace)
            else:
                exec(code, namespace)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        run(Path(each))
