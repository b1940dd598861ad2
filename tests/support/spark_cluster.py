"""Spark as on other machines: a cluster of processes whose Python lacks this package.

It consists of the pip package of PySpark alone.
"""

import os
import re
import sysconfig
import venv
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from eventhub_checkpoints.cli.demo.children import Child

OURS = "eventhub_checkpoints"
"""Part of the names of everything that this package installs, however it was installed."""
HOST = "127.0.0.1"
WORKERS = 2
START_SECONDS = 120
STARTS = re.compile(r"Starting Spark master at (\S+)(?s:.*)I have been elected leader")
REGISTERED = re.compile("Successfully registered with master")
JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Starts fastest; nothing here runs for long."""
DAEMON = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": JAVA}
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": HOST,
    "spark.driver.host": HOST,
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": str(WORKERS),
    "spark.sql.shuffle.partitions": "2",
    # No task starts before both executors exist: otherwise the first might do everything.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{START_SECONDS}s",
}


@dataclass(frozen=True)
class BareSpark:
    """Spark as on a machine where this package is not installed.

    Attributes:
        python: has the packages of this environment without this one.
        home: Spark's own files; files that its programs write by default go there, too.
    """

    python: Path
    home: Path

    @classmethod
    def made(cls, folder: Path) -> Self:
        """Create one in a folder, made of links to this environment."""
        venv.create(folder / "python", symlinks=True)
        [packages] = (folder / "python").glob("lib/python*/site-packages")
        for one in Path(sysconfig.get_path("purelib")).iterdir():
            if OURS not in one.name:
                (packages / one.name).symlink_to(one)
        home = folder / "spark"
        home.mkdir()
        for one in Path(os.environ["SPARK_HOME"]).iterdir():
            (home / one.name).symlink_to(one)
        return cls(folder / "python/bin/python", home)

    def environment(self, folder: Path, settings: Mapping[str, str]) -> dict[str, str]:
        """Return additional environment variables for a program.

        Args:
            folder: of this program; its settings are written there.
            settings: Spark settings, in addition to those of all programs.
        """
        lines = [f"{name} {value}\n" for name, value in {**SETTINGS, **settings}.items()]
        (folder / "spark-defaults.conf").write_text("".join(lines))
        return {
            "PATH": os.pathsep.join([str(self.home / "bin"), os.environ["PATH"]]),
            "PYSPARK_PYTHON": str(self.python),
            "PYSPARK_DRIVER_PYTHON": str(self.python),
            "PYTHONPATH": "",
            "SPARK_HOME": str(self.home),
            "SPARK_CONF_DIR": str(folder),
            "SPARK_LOCAL_IP": HOST,
        }


@contextmanager
def standalone(spark: BareSpark, folder: Path) -> Iterator[str]:
    """Start a master and two workers as separate processes; yield the address of the master.

    Each worker has cores for the executors of two applications at once.
    """
    environment = {**spark.environment(folder, {}), **DAEMON}
    with ExitStack() as started:

        def daemon(name: str, ready: re.Pattern[str], *words: str) -> re.Match[str]:
            log = folder / f"{name}.log"
            program = str(spark.home / "bin/spark-class")
            command = (program, *words, "--host", HOST, "--webui-port", "0")
            child = started.enter_context(Child(command, log=log, env=environment, cwd=folder))
            return child.wait_ready(
                lambda: ready.search(log.read_text(errors="replace")), START_SECONDS
            )

        leads = daemon("master", STARTS, "org.apache.spark.deploy.master.Master", "--port", "0")
        address = leads[1]
        for one in range(WORKERS):
            size = ("--cores", "2", "--memory", "1g")
            name = "org.apache.spark.deploy.worker.Worker"
            daemon(f"worker-{one}", REGISTERED, name, address, *size)
        yield address
