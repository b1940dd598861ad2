"""Checks of arguments that several modules share."""

from collections.abc import Sequence
from inspect import iscoroutinefunction

from eventhub_checkpoints._shared.callables import is_callback
from eventhub_checkpoints._shared.drivers import is_installed
from eventhub_checkpoints._shared.settings import require, require_type
from eventhub_checkpoints.errors import MissingDriverError
from eventhub_checkpoints.records import Scope


def require_function(name: str, value: object, expected: str) -> None:
    """Refuse an argument that is no function, or one that would do nothing when it is called.

    Raises:
        ConfigurationError: it cannot be called, is a coroutine function, or has a `yield`.
    """
    require_type(name, value, callable(value), expected)
    require(name, value, is_callback(value), f"{expected}, without async and yield")


def checked_scope(scope: object) -> Scope:
    """Return the scope; raises as `require_type`."""
    require_type("scope", scope, isinstance(scope, Scope), "a Scope")
    assert isinstance(scope, Scope)
    return scope


def require_hub_name(name: object) -> None:
    """Refuse a value that cannot be a hub's name; raises as `require_type`."""
    is_name = isinstance(name, str) and name != ""
    require_type("eventhub_name", name, is_name, "the hub's name, which is not empty")


def column_names(frame: object, name: str = "frame") -> Sequence[str]:
    """Return the column names of a DataFrame, whose class differs between Spark and Spark Connect.

    Raises:
        ConfigurationError: it is not a DataFrame.
    """
    names = getattr(frame, "columns", None)
    require_type(name, frame, isinstance(names, list), "a DataFrame")
    return list(names or ())


def has_sync_method(value: object, name: str) -> bool:
    """Return whether an object, not a class, has a synchronous method of this name."""
    method = getattr(value, name, None)
    return callable(method) and not iscoroutinefunction(method) and not isinstance(value, type)


def no_python_sources() -> MissingDriverError:
    """Return the error for a PySpark without data sources in Python, or for none at all."""
    if not is_installed("pyspark"):
        return MissingDriverError.of_extra("format('eventhubs')", "spark")
    import pyspark

    return MissingDriverError(
        f"format('eventhubs') needs PySpark 4, and this is PySpark {pyspark.__version__}, which "
        "has no data sources in Python. On Spark 3.5, read the hub with Spark's Kafka source or "
        "the JVM connector: to_kafka() and to_connector() of starting_positions(...) return their "
        "starting positions, and CheckpointPublisher publishes their progress"
    )
