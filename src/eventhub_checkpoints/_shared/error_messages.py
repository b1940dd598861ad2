"""Messages of exceptions that other code has raised: a user's, a driver's, a client's.

The `__str__` of such an exception may raise, return megabytes, or quote a credential. Whatever
shows or examines one uses these functions, so that reporting an error cannot fail.
"""

from eventhub_checkpoints._shared.secrets import LONGEST, masked


def unmasked_message(error: BaseException) -> str:
    """Return the message of an exception, to search it for words; not to show it.

    If its `__str__` raises, the message says that.
    """
    try:
        return str(error)
    except Exception as raised:
        return f"<its __str__ raised {type(raised).__name__}>"


def message_of(error: BaseException, limit: int = LONGEST) -> str:
    """Return the message of an exception, without secrets, of at most `limit` characters."""
    return masked(unmasked_message(error), limit)


def message_or_type(error: BaseException) -> str:
    """Return the message of an exception without its type; the type if there is no message."""
    return message_of(error) or type(error).__name__


def described(error: BaseException) -> str:
    """Return the type and the message of an exception, for a line of a log."""
    message = message_of(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
