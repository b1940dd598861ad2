"""Transport of an asynchronous client of azure-storage-blob."""

from typing import Any

from azure.core.pipeline.transport import AioHttpTransport


class SingleTryTransport(AioHttpTransport):  # type: ignore[misc]  # azure-core hides its type
    """Sends every request once.

    When a kept-alive connection ends without a response, aiohttp resends a PUT on its own. A claim
    that was carried out would then conflict with itself.

    Source: aiohttp 3.14, `client.py`, `ClientSession._request`.
    """

    async def open(self) -> None:
        """Open the session and disable its retry, for which there is no public option."""
        await super().open()
        if self.session is not None:
            self.session._retry_connection = False


def pooled(size: int, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return client arguments for `size` concurrent connections; the driver's own pool has 100."""
    return {"transport": SingleTryTransport(**arguments), **arguments}
