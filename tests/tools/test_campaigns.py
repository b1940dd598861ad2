"""What `tox -e campaign` runs."""

import configparser
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_campaign_runs_every_test_that_has_more_rounds_or_cases_in_one() -> None:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    command = tox["testenv:campaign"]["commands"]
    paths = [ROOT / path for path in re.findall(r"\btests/\S+?(?=[ }])", command)]
    assert [path for path in paths if not path.exists()] == []
    longer = [
        path
        for path in (ROOT / "tests").rglob("test_*.py")
        if re.search(r"^from (campaigns|examples) import", path.read_text(), re.M)
    ]
    assert len(longer) > 10
    left_out = [path for path in longer if not any(path.is_relative_to(one) for one in paths)]
    assert [str(path.relative_to(ROOT)) for path in left_out] == []
