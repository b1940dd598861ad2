from prompt_client import prompt_client

__all__ = ["prompt_client"]
