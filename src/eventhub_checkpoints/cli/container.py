"""A server in a container: where a Docker engine answers and testcontainers is installed."""

import importlib.util
import os
import socket
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from eventhub_checkpoints.errors import CheckpointStoreError

DEFAULT_ENGINE = "unix:///var/run/docker.sock"
ENGINE_SECONDS = 2
"""In which an engine that is there has answered."""


class ContainerError(CheckpointStoreError):
    """A server in a container does not answer."""


class Container:
    """One server of a published image, on a free port of this machine.

    Args:
        image: its name with its version.
        port: where the server listens inside.
        command: what runs inside; empty: what the image says.
        environment: variables for it.
    """

    def __init__(
        self,
        image: str,
        port: int,
        *,
        command: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.image = image
        self._port = port
        self._command = command
        self._environment = environment or {}
        self._container: Any = None

    def __str__(self) -> str:
        return f"the image {self.image}"

    def install(self) -> None:
        """Pull the image."""
        engine = import_module("docker").from_env()
        try:
            engine.images.pull(self.image)
        finally:
            engine.close()

    def start(self, answers: Callable[[str], bool], seconds: float) -> str:
        """Start it and return its `HOST:PORT` when it answers there.

        Raises:
            ContainerError: it does not answer in time; it is stopped then.
        """
        made = import_module("testcontainers.core.container").DockerContainer(self.image)
        self._container = made.with_exposed_ports(self._port)
        if self._command:
            self._container.with_command(self._command)
        for name, value in self._environment.items():
            self._container.with_env(name, value)
        try:
            self._container.start()
            return self._when_ready(answers, seconds)
        except BaseException:  # Ctrl-C too: what was started ends with the attempt
            self.stop()
            raise

    def _when_ready(self, answers: Callable[[str], bool], seconds: float) -> str:
        host = self._container.get_container_host_ip()
        address = f"{host}:{self._container.get_exposed_port(self._port)}"
        deadline = time.monotonic() + seconds
        while not answers(address):
            if time.monotonic() > deadline:
                raise ContainerError(f"{self} does not answer at {address} after {seconds:g} s")
            time.sleep(0.1)
        return address

    def stop(self) -> None:
        """Stop and remove it."""
        if self._container is not None:
            self._container.stop()
            self._container = None


def containers_run() -> bool:
    """Whether a container can be started here: testcontainers is installed, an engine answers."""
    return importlib.util.find_spec("testcontainers") is not None and _engine_answers()


def _engine_answers() -> bool:
    """Whether a Docker engine is really there: the command on the PATH proves nothing."""
    scheme, _, path = os.environ.get("DOCKER_HOST", DEFAULT_ENGINE).partition("://")
    if scheme == "unix":  # asked first, for docker leaves such a socket open where none listens
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(ENGINE_SECONDS)
            if probe.connect_ex(path) != 0:
                return False
    docker = import_module("docker")  # comes with testcontainers
    try:
        engine = docker.from_env(timeout=ENGINE_SECONDS)
    except docker.errors.DockerException:
        return False
    try:
        return bool(engine.ping())
    except (docker.errors.DockerException, OSError):
        return False
    finally:
        engine.close()
