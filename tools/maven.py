"""Sets of jars that Maven downloads into the cache folder, complete or not at all."""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from downloads import DownloadError, cache_folder, download, install_once

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>jars</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""
COPY = "-q -B dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=lib"


class JarsMissingError(Exception):
    """Jars are missing; the message names what downloads them."""


@dataclass(frozen=True)
class Artifact:
    """Artifact to download with its dependencies, except those already present.

    Attributes:
        coordinates: `group:name:version`.
        without: `group:name` of dependencies that its user provides.
    """

    coordinates: str
    without: Sequence[str] = ()

    @property
    def dependency(self) -> str:
        """Return its element in a POM."""
        group, name, version = self.coordinates.split(":")
        left_out = "".join(f"<exclusion>{of(*one.split(':'))}</exclusion>" for one in self.without)
        return (
            f"<dependency>{of(group, name)}<version>{version}</version>"
            f"<exclusions>{left_out}</exclusions></dependency>"
        )


def of(group: str, name: str) -> str:
    """Return the elements by which a POM names a project."""
    return f"<groupId>{group}</groupId><artifactId>{name}</artifactId>"


@dataclass(frozen=True)
class JarSet:
    """A few artifacts, and the jars that are kept of all that Maven copies for them.

    Attributes:
        name: of the folder in the cache; includes the version.
        artifacts: artifacts to download.
        fetched_by: remedy for missing jars, for error messages.
        kept: prefixes of the file names that are kept.
    """

    name: str
    artifacts: tuple[Artifact, ...]
    fetched_by: str
    kept: tuple[str, ...] = ("",)

    @property
    def home(self) -> Path:
        """Folder of the jars."""
        return cache_folder() / self.name

    def jars(self) -> list[Path]:
        """Return the jars, sorted by name.

        Raises:
            JarsMissingError: they have not been downloaded yet.
        """
        if not self.home.exists():
            raise JarsMissingError(f"the jars of {self.name} are missing; {self.fetched_by}")
        return sorted(self.home.glob("*.jar"))

    def install(self) -> None:
        """Download the jars, unless they are there.

        Raises:
            JarsMissingError: there is no Maven, or it failed; contains its output.
        """
        install_once(self.home, self._fill)

    def _fill(self, folder: Path) -> None:
        # A separate repository: what a failed run leaves in the user's, such as POMs without their
        # jars, makes later runs fail, and Spark's own resolver with them.
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            copy(Path(work), POM.format(dependencies="".join(a.dependency for a in self.artifacts)))
            folder.mkdir()
            for jar in Path(work, "lib").glob("*.jar"):
                if jar.name.startswith(self.kept):
                    shutil.move(jar, folder)


def copy(folder: Path, pom: str) -> None:
    """Have Maven copy the jars of a POM into the folder's `lib`.

    Raises:
        JarsMissingError: there is no Maven, or it failed; contains its output.
    """
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsMissingError("the jars come with Maven, and mvn is not on the PATH")
    (folder / "pom.xml").write_text(pom)
    try:
        download([maven, *COPY.split(), f"-Dmaven.repo.local={folder / 'repository'}"], cwd=folder)
    except DownloadError as failed:
        raise JarsMissingError(f"Maven failed:\n{failed}") from None
