"""How many examples Hypothesis tries: a usual number, scaled by the chosen profile.

`pytest --hypothesis-profile fast` tries a fifth of them, `campaign` twenty times as many. `mutants`
tries half of them, the same each time, and does not look for a smaller example of a failure.
"""

from typing import Any

from hypothesis import Phase, settings

USUAL = 100
PROFILES = {"fast": 20, "usual": USUAL, "campaign": 2000}
"""Examples of a test that names no number, by profile."""


def register_profiles() -> None:
    """Register the profiles, and load the usual one; pytest's option loads another later."""
    for name, count in PROFILES.items():
        # The parent has what Hypothesis itself sets for CI.
        settings.register_profile(name, settings.default, max_examples=count, deadline=None)
    settings.register_profile(
        "mutants",
        settings.get_profile("usual"),
        max_examples=USUAL // 2,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
    )
    settings.load_profile("usual")


def examples(usual: int, **others: Any) -> settings:
    """Return settings for a test that usually tries this many examples."""
    assert settings.default is not None
    scaled = usual * settings.default.max_examples // USUAL
    return settings(max_examples=max(scaled, 5), **others)
