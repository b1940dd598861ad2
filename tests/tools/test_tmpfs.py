"""Small file systems, which need root: who mounts them, and what is said to others."""

import os
from pathlib import Path

import pytest

from tmpfs import MountError, mounted


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of commands that stand in for those of the system, for a user who is not root."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return folder


def command(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_ci_mounts_with_sudo(
    commands: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "1")
    command(commands / "sudo", f'echo "sudo $*" >> {tmp_path}/log')
    with mounted(tmp_path / "small", "256k") as folder:
        assert folder.is_dir()
    assert not folder.exists()
    assert (tmp_path / "log").read_text().splitlines() == [
        f"sudo -n mount -t tmpfs -o size=256k none {folder}",
        f"sudo -n umount --lazy {folder}",
    ]


def test_another_user_is_told_what_it_needs(
    commands: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    command(commands / "mount", "echo not permitted >&2; exit 32")
    command(commands / "sudo", "exit 0")
    with (
        pytest.raises(MountError, match=r"needs root, or CI=1 and sudo .*: not permitted"),
        mounted(tmp_path / "small", "256k"),
    ):
        pytest.fail("it is not mounted")
