"""The benchmark of Spark's reads, where its Kafka source is at hand."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2,
    reason="it puts server and client on cores of their own, as Linux can, and needs two",
)
@pytest.mark.usefixtures("spark", "broker")
def test_a_read_is_measured_beside_the_kafka_source(tmp_path: Path) -> None:
    """It starts servers and a session of its own; the fixtures say whether it can."""
    written = tmp_path / "figures.json"
    words = ["--quick", "--rounds", "1", "--partitions", "2", "--only", "stream-parquet"]
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.spark", *words, "--json", str(written)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tools")},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    cases = json.loads(written.read_text())["cases"]
    sides = {
        "stream-parquet": {"ours", "plain", "plain 1000", "kafka"},
        "stream-parquet-beside-prebuilt": {"ours", "prebuilt"},
        "stream-parquet-public": {"ours, public", "plain", "plain 1000", "kafka"},
        "stream-parquet-over-kafka": {"ours, kafka", "kafka"},
    }
    assert {case["name"] for case in cases} == {f"{name}-2-{n}" for name in sides for n in (0, 3)}
    for case in cases:
        rates = case["measures"]["rate"]["median"]
        assert {*rates} == sides[case["name"].removesuffix("-2-0").removesuffix("-2-3")]
        assert all(rate > 0 for rate in rates.values())
