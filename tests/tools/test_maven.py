"""Jars come into the cache whole or not at all, and a failed Maven leaves no trace anywhere."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from maven import Artifact, JarSet, JarsMissingError

ARTIFACT = Artifact("org.example:thing_2.13:1.0", without=("org.example:other",))
JARS = JarSet("thing-1.0", (ARTIFACT,), fetched_by="run `make jars`", kept=("thing",))
BRINGS_TWO = "mkdir lib; touch lib/thing-1.0.jar lib/other-1.0.jar"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("EVENTHUB_CHECKPOINTS_CACHE", str(folder))
    return folder


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a program `mvn` on the PATH; its words are found in the file that is returned."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")

    def make(script: str) -> Path:
        words = programs / "words"
        program = programs / "mvn"
        program.write_text(f'#!/bin/sh\necho "$@" > {words}\ncp pom.xml {words}.pom\n{script}\n')
        program.chmod(0o755)
        return words

    return make


def left_in(cache: Path) -> set[str]:
    return {one.name for one in cache.iterdir() if one.suffix != ".lock"}


def test_the_jars_that_are_kept_are_in_the_cache(cache, maven):
    words = maven(BRINGS_TWO)
    JARS.install()
    assert [jar.name for jar in JARS.jars()] == ["thing-1.0.jar"]
    assert left_in(cache) == {"thing-1.0"}
    pom = Path(f"{words}.pom").read_text()
    assert "<artifactId>thing_2.13</artifactId><version>1.0</version>" in pom
    assert "<exclusion><groupId>org.example</groupId><artifactId>other</artifactId>" in pom


def test_maven_has_a_repository_of_its_own_that_is_gone_afterwards(cache, maven):
    words = maven(BRINGS_TWO)
    JARS.install()
    [given] = [word for word in words.read_text().split() if "maven.repo.local" in word]
    repository = Path(given.partition("=")[2])
    assert repository.is_relative_to(cache)
    assert not repository.exists()


def test_after_a_failure_nothing_is_in_the_cache_and_the_next_try_succeeds(cache, maven):
    maven(f"{BRINGS_TWO}; echo 'no such artifact'; exit 1")
    with pytest.raises(JarsMissingError, match="no such artifact"):
        JARS.install()
    assert left_in(cache) == set()
    with pytest.raises(JarsMissingError, match="run `make jars`"):
        JARS.jars()
    maven(BRINGS_TWO)
    JARS.install()
    assert JARS.jars()


def test_what_is_there_is_not_fetched_again(cache, maven):
    maven(BRINGS_TWO)
    JARS.install()
    maven("exit 1")
    JARS.install()
    assert left_in(cache) == {"thing-1.0"}


def test_without_maven_the_error_says_so(cache, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(JarsMissingError, match="mvn is not on the PATH"):
        JARS.install()
