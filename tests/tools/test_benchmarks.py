"""The benchmark commands, as small as they can be asked."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from backends import Backend

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]


def benchmark(module: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )


def quick_benchmark(
    module: str, written: Path, *only: str, words: Sequence[str] = ()
) -> tuple[str, dict[str, Any]]:
    """What a quick run prints, and the measures of its cases."""
    words = [*words, "--quick", "--rounds", "1", "--json", str(written)]
    ran = benchmark(module, *words, *(word for name in only for word in ("--only", name)))
    assert ran.returncode == 0, ran.stderr
    cases = json.loads(written.read_text())["cases"]
    return ran.stdout, {case["name"]: case["measures"] for case in cases}


@pytest.mark.usefixtures("azurite")
def test_one_quick_case_prints_its_row_and_writes_its_figures(tmp_path: Path) -> None:
    """It starts a server of its own, as it does for a user: that of the tests holds their rows."""
    printed, cases = quick_benchmark("benchmarks", tmp_path / "figures.json", "renew")
    assert "renew an ownership" in printed
    assert "at most 0.4 x official" in printed
    assert {*cases} == {"renew"}
    assert {*cases["renew"]} == {"cpu", "wall"}
    for measure in cases["renew"].values():
        assert {*measure["median"]} == {"ours", "official", "bare"}
        assert all(value > 0 for value in measure["median"].values())


def test_backends_are_measured_beside_their_bare_drivers(
    servers: Callable[[str], Backend], tmp_path: Path
) -> None:
    names, only = ("sqlite", "mysql"), ("renew", "write-8", "checkpoint", "list-aio")
    servers("mysql")
    written = tmp_path / "figures.json"
    printed, cases = quick_benchmark("benchmarks.backends", written, *names, *only)
    assert "at most 0.15 ms above bare" in printed
    assert {*cases} == {f"{case}-{name}" for case in only for name in names}
    for name in names:
        assert {*cases[f"renew-{name}"]} == {"cpu", "wall"}
        assert {*cases[f"write-8-{name}"]} == {"cpu", "rate"}
    for measures in cases.values():
        for measure in measures.values():
            # Official Blob is beside them where there is an Azurite.
            assert {"ours", "bare"} <= {*measure["median"]}
            assert all(value > 0 for value in measure["median"].values())


def test_a_batch_of_claims_is_one_round_trip(
    servers: Callable[[str], Backend], tmp_path: Path
) -> None:
    names = "postgres", "redis"
    for name in names:
        servers(name)
    written = tmp_path / "figures.json"
    _, cases = quick_benchmark("benchmarks.backends", written, *names, "trips-64")
    for name in names:
        trips = cases[f"trips-64-{name}"]["trips"]
        assert trips["median"]["ours"] == 1
        assert [one["reached"] for one in trips["targets"]] == [True]


on_two_cores = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2,
    reason="it puts server and client on cores of their own, as Linux can, and needs two",
)


@on_two_cores
@pytest.mark.usefixtures("azurite")
def test_consumers_with_checkpoints_are_measured_beside_one_without(tmp_path: Path) -> None:
    """One that has not stored the last event's checkpoint in the end fails the command."""
    only = ["tracker-100", "coalescing", "tracked-aio", "tracing-processor"]
    _, cases = quick_benchmark("benchmarks.processing", tmp_path / "figures.json", *only)
    assert {*cases} == {*only}
    medians = cases["tracker-100"]["event"]["median"]
    assert {*medians} == {"ours", "list", "heap", "shell", "shell, aio"}
    assert all(value > 0 for value in medians.values())
    for name in ("coalescing", "tracked-aio"):
        assert {*cases[name]} == {"rate", "cpu", "layer", "writes"}
        assert {*cases[name]["layer"]["median"]} == {"ours"}
        for measure in ("rate", "cpu"):
            medians = cases[name][measure]["median"]
            assert {*medians} == {"ours", "official", "none"}
            assert all(value > 0 for value in medians.values())
        writes = cases[name]["writes"]["median"]
        assert 0 == writes["none"] < writes["ours"] < writes["official"]
    for medians in (cases["tracing-processor"][name]["median"] for name in ("rate", "cpu")):
        assert {*medians} == {"off", "api", "sdk"}
        assert all(value > 0 for value in medians.values())
    targets = [one["target"] for one in cases["coalescing"]["rate"]["targets"]]
    assert targets == ["at least 0.9 x none"]


@on_two_cores
def test_what_is_received_is_measured_beside_the_official_client(tmp_path: Path) -> None:
    _, cases = quick_benchmark("benchmarks.receive", tmp_path / "figures.json", "mixed-far")
    [target] = cases["mixed-far"]["rate"]["targets"]
    assert target["target"] == "at least 10 x official"
    assert {*cases["mixed-far"]} == {"rate", "cpu", "memory", "server"}
    sides = {"fast", "public", "official", "official 3000"}
    assert {*cases["mixed-far"]["rate"]["median"]} == sides
    assert all(value > 0 for value in cases["mixed-far"]["rate"]["median"].values())


@on_two_cores
@pytest.mark.usefixtures("azurite")
def test_a_group_is_consumed_in_batches_beside_the_official_client(tmp_path: Path) -> None:
    written = tmp_path / "figures.json"
    _, cases = quick_benchmark("benchmarks.consume", written, "200-5-8-sqlite", "2048-0-1-blob")
    sides = {"official", "processor", "consume_batches", "process_batch", "read_batches"}
    for name, times in (("200-5-8-sqlite", 6), ("2048-0-1-blob", 10)):
        measures = cases[f"{name}-consume_batches"]
        assert {*measures} == {"rate", "core", "cpu", "server"}
        assert {*measures["core"]["median"]} == sides
        assert all(value > 0 for value in measures["core"]["median"].values())
        for way in ("consume_batches", "process_batch"):
            targets = [one["target"] for one in cases[f"{name}-{way}"]["core"]["targets"]]
            assert {*targets} == {f"at least {times} x official", "at least 0.9 x read_batches"}


@on_two_cores
def test_the_clients_of_event_loops_are_measured_as_well(tmp_path: Path) -> None:
    written = tmp_path / "figures.json"
    words = ["--aio", "--store", "none", "--partitions", "1", "--properties", "5", "--body", "200"]
    _, cases = quick_benchmark("benchmarks.consume", written, words=words)
    assert {*cases} == {"200-5-1-none-consume_batches", "200-5-1-none-process_batch"}
    assert all(value > 0 for value in cases[next(iter(cases))]["core"]["median"].values())


@on_two_cores
def test_two_members_memory_and_latency_are_measured(tmp_path: Path) -> None:
    only = ["two-processes", "memory", "latency"]
    _, cases = quick_benchmark("benchmarks.consume", tmp_path / "figures.json", *only)
    assert {*cases} == {"two-processes", "memory-64", "memory-16", "latency"}
    assert {*cases["two-processes"]["cpu"]["median"]} == {"two processes", "one process"}
    for buffer in (64, 16):
        grown = cases[f"memory-{buffer}"]["memory"]
        assert grown["median"]["growth"] > 0
        assert [one["target"] for one in grown["targets"]] == ["at most 1 x bound"]
    waits = {"max_wait=0", "max_wait=0.1", "max_wait=1"}
    for measure in ("median", "p99"):
        medians = cases["latency"][measure]["median"]
        assert {*medians} == waits | {"official", "official, aio"}
        assert all(value > 0 for value in medians.values())


@on_two_cores
def test_what_is_sent_is_measured_beside_the_official_client(tmp_path: Path) -> None:
    _, cases = quick_benchmark("benchmarks.send", tmp_path / "figures.json", "three-swallowed")
    [target] = cases["three-swallowed"]["rate"]["targets"]
    assert target["target"] == "at least 5 x official"
    assert {*cases["three-swallowed"]["rate"]["median"]} == {"fast", "public", "official"}
    assert all(value > 0 for value in cases["three-swallowed"]["rate"]["median"].values())


@pytest.fixture(scope="module")
def of_spark(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """What a run with all of Spark's cases prints, and their measures: Java starts once."""
    written = tmp_path_factory.mktemp("spark") / "figures.json"
    only = ["batch-noop", "two-tasks", "idle", "micro-batch", "at-rest"]
    return quick_benchmark("benchmarks.spark", written, *only, words=["--partitions", "1"])


READS = {
    f"batch-noop{which}-1-{properties}": side
    for which, side in {
        "": "ours",
        "-beside-prebuilt": "ours",
        "-public": "ours, public",
    }.items()
    for properties in (0, 3)
}


@on_two_cores
def test_the_cases_of_spark_are_those_that_were_asked_for(
    of_spark: tuple[str, dict[str, Any]],
) -> None:
    printed, cases = of_spark
    # The environment `kafka` has it, and only there can it be had; see its own test.
    assert "without Spark's Kafka source" in printed
    streams = {"at-rest-2", "micro-batch-far-2", "micro-batch-far-4"}
    assert {*cases} == {*READS, "two-tasks", "idle", *streams}


@on_two_cores
def test_what_spark_reads_is_measured_beside_a_plain_loop(
    of_spark: tuple[str, dict[str, Any]],
) -> None:
    _, cases = of_spark
    for name, side in READS.items():
        assert {*cases[name]} == {"rate", "task", "cpu", "server"}
        if "prebuilt" in name:
            assert {*cases[name]["rate"]["median"]} == {side, "prebuilt"}
            continue
        assert {*cases[name]["rate"]["median"]} == {side, "plain", "plain 1000"}
        targets = [one["target"] for one in cases[name]["task"]["targets"]]
        assert targets == ["at least 6 x plain" if side == "ours" else "at least 0.9 x plain"]
    assert {*cases["two-tasks"]["rate"]["median"]} == {"two tasks", "one task", "one, both cores"}
    assert {*cases["idle"]["trigger"]["median"]} == {"auto", "one task each"}
    for case in (*READS, "two-tasks", "idle"):
        for name, measure in cases[case].items():
            # What the stand-in does for so few events is less than the kernel counts.
            assert all(value > 0 or name == "server" for value in measure["median"].values())


@on_two_cores
def test_a_micro_batch_is_measured_beside_a_source_that_asks_nobody(
    of_spark: tuple[str, dict[str, Any]],
) -> None:
    """The hub counts what it is asked."""
    printed, cases = of_spark
    for kind in ("far-2", "far-4"):
        measures = cases[f"micro-batch-{kind}"]
        is_sparse = kind.endswith("4")
        sides = {"ours"} if is_sparse else {"ours", "ours, auto", "dummy"}
        assert {*measures["micro-batch"]["median"]} == sides
        assert all(value > 0 for value in measures["micro-batch"]["median"].values())
        assert measures["questions"]["median"]["ours"] > 0
        if not is_sparse:
            assert measures["questions"]["median"]["dummy"] == 0
    assert {*cases["at-rest-2"]} == {"connections", "questions"}
    assert "each second" in printed


def test_a_quick_simulation_prints_its_table_and_writes_its_figures(tmp_path: Path) -> None:
    written = tmp_path / "figures.json"
    words = ["--quick", "--jobs", "1", "--only", "backends", "--seed", "7", "--json", str(written)]
    ran = benchmark("benchmarks.scale", *words)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("seed 7\n")
    assert "| cassandra | fail-10% |" in ran.stdout
    figures = json.loads(written.read_text())
    assert figures["seed"] == 7
    assert len(figures["runs"]) == 8
    assert all(each["is_read_once"] for each in figures["runs"])


@pytest.mark.parametrize(
    ("module", "known"),
    [
        ("benchmarks.__main__", "renew"),
        ("benchmarks.backends", "renew"),
        ("benchmarks.processing", "tracked"),
        ("benchmarks.consume", "two-processes"),
        ("benchmarks.spark", "two-tasks"),
        ("benchmarks.scale.__main__", "intervals"),
    ],
)
def test_an_unknown_case_is_answered_with_the_known_ones(
    module: str, known: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [module, "--only", "nothing"])
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(module).main()
    assert ended.value.code == 2
    assert known in capsys.readouterr().err
