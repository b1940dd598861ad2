"""When a broken receiver is opened again: as the client's own settings say."""

from collections.abc import Mapping
from typing import Any


class Retries:
    """Counts what failed in a row, and says how long to wait before the next attempt.

    Args:
        settings: keywords of the client; used are those that begin with `retry_`, and the
            client's defaults where they are missing.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._total = int(settings.get("retry_total", 3))
        self._factor = float(settings.get("retry_backoff_factor", 0.8))
        self._longest = float(settings.get("retry_backoff_max", 120))
        self._fixed = settings.get("retry_mode", "exponential") == "fixed"
        self._failed = 0

    def succeeded(self) -> None:
        """Events came: what fails from now on is counted from nothing."""
        self._failed = 0

    def pause(self) -> float | None:
        """Seconds until the next attempt; None where there is none any more."""
        self._failed += 1
        if self._failed > self._total:
            return None
        growth = 1.0 if self._fixed else float(2 ** (self._failed - 1))
        return min(self._factor * growth, self._longest)
