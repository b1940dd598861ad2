"""The connections of an asynchronous blob client."""

from typing import Any

from eventhub_checkpoints.errors import MissingDriverError

try:
    from azure.core.pipeline.transport import AioHttpTransport
except ImportError as error:
    raise MissingDriverError.of_extra("the Blob store", "blob") from error


class SingleTryTransport(AioHttpTransport):  # type: ignore[misc]  # azure-core hides its type
    """Sends every request once.

    When a kept connection ends without an answer, aiohttp sends a PUT again by itself. A claim
    that was carried out would then lose against itself, and nobody would know why.

    Source: aiohttp 3.14, `client.py`, `ClientSession._request`.
    """

    async def open(self) -> None:
        """Open the session, and switch that off; there is no public switch."""
        await super().open()
        if self.session is not None:
            self.session._retry_connection = False


def check_credential(credential: object) -> None:
    """Take a credential of either kind: the driver awaits a token where it has to."""


def pooled(size: int, arguments: dict[str, Any]) -> dict[str, Any]:
    """Client arguments for so many connections at once: the driver's own pool holds 100."""
    return {"transport": SingleTryTransport(**arguments), **arguments}
