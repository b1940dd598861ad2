"""Server in a container; needs a running Docker engine and testcontainers."""

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
"""Timeout of the probe for a running engine."""


class ContainerError(CheckpointStoreError):
    """Raised if a server in a container does not answer."""


class Container:
    """Server that runs from a published image, on a free port of this machine.

    Args:
        image: its name with its version.
        port: the port inside the container.
        command: command inside the container; empty: the default of the image.
        environment: additional variables.
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
        """Start the server and return its `HOST:PORT` as soon as it answers there.

        Args:
            answers: returns whether the server answers at an address.
            seconds: maximum time until then.

        Raises:
            ContainerError: the server does not answer in time; the container is removed.
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
        except BaseException:  # Ctrl-C too: a failed start must leave no container
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
        """Stop and remove the container."""
        if self._container is not None:
            self._container.stop()
            self._container = None


def containers_run() -> bool:
    """Return whether testcontainers is installed and a Docker engine answers."""
    return importlib.util.find_spec("testcontainers") is not None and _engine_answers()


def _engine_answers() -> bool:
    """Return whether a Docker engine answers; a `docker` command on the PATH proves nothing."""
    scheme, _, path = os.environ.get("DOCKER_HOST", DEFAULT_ENGINE).partition("://")
    if scheme == "unix":  # the docker package leaks its socket if nothing listens
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
