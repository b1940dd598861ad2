"""The command `python -m crashes`: rounds, seeds, lines, problems and status of every scenario."""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest

from backends import ServerMissingError
from crashes import __main__ as command
from crashes import harness
from crashes.harness import Result, told
from eventhub_checkpoints.cli.demo.children import ChildError


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "monotonic", lambda: 0.0)


class Scenario:
    """Do what a test wants in each round.

    The rest of the help.
    """

    ROUNDS = 3

    def __init__(
        self, run_round: Callable[[int], Result], smaller: Callable[[], Sequence[str]] = tuple
    ) -> None:
        self._run_round, self._smaller = run_round, smaller

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--store", default="sqlite")
        parser.add_argument("--two-words", default="")
        parser.add_argument("--is-quick", action="store_true")

    def results(self, chosen: argparse.Namespace, repeats: str) -> Iterator[Result]:
        for seed in range(chosen.seed, chosen.seed + chosen.rounds):
            yield told(repeats, seed, partial(self._run_round, seed), self._smaller)

    def report(self, results: Sequence[Result]) -> str:
        return harness.table([("seed", "kills"), *((str(r.seed), "2") for r in results)])


def run(scenario: Scenario, *options: str) -> int:
    return harness.main({"made-up": scenario}, "Help.", ["made-up", *options])


def test_each_round_is_printed_with_its_seed_and_what_has_occurred(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scenario = Scenario(lambda seed: Result(Counter(kills=seed, stops=0)))
    assert run(scenario, "--seed", "9", "--rounds", "2") == 0
    assert capsys.readouterr().out.splitlines() == [
        "made-up: seed 9, 2 rounds",
        "made-up: seed 9 ok: 0 s, 9 kills",
        "made-up: seed 10 ok: 0 s, 10 kills",
        "| seed | kills |",
        "| ---- | ----- |",
        "| 9    | 2     |",
        "| 10   | 2     |",
        "no failure",
    ]


def test_a_round_that_fails_is_printed_with_its_problems_and_the_command_that_repeats_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scenario = Scenario(
        lambda seed: Result(problems=["1 event is lost"] if seed == 8 else []),
        lambda: ["fault-0", "worker-1"],
    )
    options = ["--seed", "7", "--store", "redis", "--two-words", "in the sink", "--is-quick"]
    assert run(scenario, *options) == 1
    printed = capsys.readouterr().out
    again = "made-up --store redis --two-words 'in the sink' --is-quick"
    assert f"{again}: seed 8 failed: 0 s\n  1 event is lost\n" in printed
    repeat = f"python -m crashes {again} --seed 8 --rounds 1 --without fault-0,worker-1"
    assert f"  repeat: {repeat}\n" in printed
    assert printed.count("repeat") == 1
    assert printed.endswith("failed: 8\n")


@pytest.mark.parametrize("error", [ChildError("a driver has ended"), KeyError("partition")])
def test_a_round_that_cannot_be_judged_has_failed_and_the_next_one_runs(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_round(seed: int) -> Result:
        if seed == 7:
            raise error
        return Result()

    assert run(Scenario(run_round), "--seed", "7", "--rounds", "2") == 1
    printed = capsys.readouterr().out
    assert "seed 7 failed: 0 s\n" in printed
    assert f"{type(error).__name__}: {error}\n" in printed
    assert "seed 8 ok" in printed


def test_without_its_server_a_scenario_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    def run_round(seed: int) -> Result:
        raise ServerMissingError("there is no PostgreSQL")

    assert run(Scenario(run_round), "--seed", "7") == 1
    assert capsys.readouterr().out == "made-up: seed 7, 3 rounds\nthere is no PostgreSQL\n"


@pytest.mark.parametrize("rounds", ["0", "-1", "some"])
def test_a_run_without_a_round_is_refused(rounds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(Scenario(lambda seed: Result()), "--rounds", rounds)
    assert ended.value.code == 2
    expected = f"argument --rounds: must be a whole number from 1 on, not '{rounds}'"
    assert expected in capsys.readouterr().err


def test_what_a_failing_round_does_not_need_is_left_out() -> None:
    tried: list[Sequence[str]] = []

    def fails(names: Sequence[str]) -> bool:
        tried.append(names)
        return "b" not in names

    assert harness.shrunk("abc", fails) == ["a", "c"]
    assert tried == [["a"], ["a", "b"], ["a", "c"]]


@pytest.mark.parametrize("name", command.SCENARIOS)
def test_each_scenario_has_help_and_a_number_of_rounds(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = command.SCENARIOS[name]
    with pytest.raises(SystemExit) as ended:
        command.main([name, "--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert (scenario.__doc__ or "").strip().splitlines()[0] in printed
    assert f"by default {scenario.ROUNDS}" in printed
