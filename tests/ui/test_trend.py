"""Sparklines."""

from eventhub_checkpoints.ui.trend import HEIGHT, WIDTH, trend


def test_the_newest_sample_is_at_the_right_edge_and_zero_at_the_bottom() -> None:
    drawn = trend([10, 0], places=3)
    assert drawn.path == f"M{WIDTH / 2:.0f} 2L{WIDTH} {HEIGHT - 2}"
    assert drawn.label == "lag 0, between 0 and 10"
    assert drawn.highest == 10


def test_an_unknown_lag_is_a_gap() -> None:
    drawn = trend([1, None, 1, 1], places=4)
    assert drawn.path.count("M") == 2
    assert trend([1, None], places=4).label == "lag unknown, between 1 and 1"


def test_nothing_known_draws_nothing() -> None:
    assert trend([], places=4).path == trend([None, None], places=4).path == ""
    assert trend([None], places=4).label == "lag unknown"
    assert trend([None], places=4).highest is None


def test_a_single_sample_is_visible() -> None:
    assert trend([7], places=60).path.endswith("h1")


def test_only_the_last_samples_are_drawn() -> None:
    assert trend([999, 1, 2], places=2).label == "lag 2, between 1 and 2"
