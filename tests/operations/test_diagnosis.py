"""The command in what mends a finding."""

import pytest

from eventhub_checkpoints.operations.doctor.diagnosis import command_in
from eventhub_checkpoints.operations.doctor.finding import TARGET


@pytest.mark.parametrize("target", ["", " --store sqlite:///x.db --group audit"])
@pytest.mark.parametrize(
    ("remedy", "command"),
    [
        (
            f"ehcp reset --to-earliest --partitions 1,2{TARGET}",
            "ehcp reset --to-earliest --partitions 1,2",
        ),
        (f"ehcp doctor --fix{TARGET} deletes their rows", "ehcp doctor --fix"),
        (f"let a consumer store a checkpoint; ehcp peek 0{TARGET} shows it", "ehcp peek 0"),
    ],
)
def test_a_command_is_taken_out_of_its_sentence(remedy: str, command: str, target: str) -> None:
    assert command_in(remedy, target) == command + target


@pytest.mark.parametrize("remedy", ["stop their consumers", "move it: ehcp migrate --help"])
def test_a_remedy_without_a_target_has_no_command(remedy: str) -> None:
    assert command_in(remedy, " --group audit") == ""
