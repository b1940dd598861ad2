"""The command `python -m mutation`; what it does with a module takes minutes."""

import pytest

from mutation import __main__ as command


def test_an_unknown_module_is_answered_with_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["nonsense", "processing/policy"])
    assert ended.value.code == 2
    printed = capsys.readouterr().err
    assert "error: nonsense: choose from " in printed
    assert "processing/watermark, " in printed
