"""Operations on a local hub, whose answers the official client need not wait for."""

from prompt_client import prompt_client

__all__ = ["prompt_client"]
