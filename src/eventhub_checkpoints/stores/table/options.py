"""The constructor's arguments that sync and async stores share.

Every function here raises `ConfigurationError` for what it does not accept.
"""

import re
from typing import Any
from urllib.parse import parse_qsl

from eventhub_checkpoints._shared.secrets import quoted
from eventhub_checkpoints._shared.settings import StoreSettings, nearest_first
from eventhub_checkpoints.errors import ConfigurationError
from eventhub_checkpoints.stores.azure_storage.account import (
    Endpoint,
    ResourceUrl,
    checked_account,
    checked_text,
)
from eventhub_checkpoints.stores.azure_storage.authorization import SAS_KEYS, is_sas
from eventhub_checkpoints.stores.azure_storage.connection_options import ConnectionOptions
from eventhub_checkpoints.stores.backends import TABLE
from eventhub_checkpoints.stores.suggestions import did_you_mean
from eventhub_checkpoints.stores.table.protocol import SERVICE

PREFIX = "table+"
OWN_SETTINGS = ("api_version", "create_table", "name_case", "keep_history")
CONNECTION_SETTINGS = ("connection_verify", "connection_cert", "proxies", "use_env_settings")


def table_url(url: str) -> ResourceUrl:
    """Parse `table+https://ACCOUNT.table.core.windows.net/TABLE[?SAS]`."""
    text = checked_text("the table's URL", url)
    if not re.match(r"table\+https?://", text, re.IGNORECASE):
        hint = did_you_mean(text, TABLE.schemes)
        raise ConfigurationError(f"{quoted(text)}: expected {SERVICE.form}[?SAS]{hint}")
    return ResourceUrl.parse(text[len(PREFIX) :], SERVICE)


def separated(arguments: dict[str, Any]) -> tuple[StoreSettings, dict[str, Any]]:
    """Return the store's own settings, and those of its connections."""
    names = StoreSettings.__annotations__.keys()
    settings = {name: value for name, value in arguments.items() if name in names}
    connection = {name: value for name, value in arguments.items() if name not in names}
    for name in connection.keys() - {*CONNECTION_SETTINGS}:
        known = ", ".join(nearest_first(name, [*OWN_SETTINGS, *names, *CONNECTION_SETTINGS]))
        raise ConfigurationError(
            f"{name} is not a setting of TableCheckpointStore; expected one of {known}"
        )
    return StoreSettings(**settings), connection  # type: ignore[typeddict-item]  # names: its keys


def connection_options(arguments: dict[str, Any], url: str) -> ConnectionOptions:
    """Return how to connect to the server of a URL."""
    connection = ConnectionOptions.of(arguments, url)
    if connection is None:
        raise ConfigurationError("proxies has a key besides http and https; expected these two")
    return connection


def endpoint_of(account_url: Any, credential: Any) -> Endpoint:
    """Return where to send requests, and how they are authorised."""
    if isinstance(account_url, str) and account_url.lower().startswith(PREFIX):
        raise ConfigurationError(
            f"the account URL begins with {PREFIX}, as a URL for open_store or from_url does; "
            f"expected {SERVICE.account_form}"
        )
    endpoint = Endpoint.of(checked_account(account_url, SERVICE), credential, SERVICE)
    if endpoint is None:
        raise ConfigurationError(
            "the account URL and the credential do not fit together: expected "
            f"{SERVICE.account_form}, and either a SAS in it or as credential=, an account key "
            "(for another host a dict of account_name and account_key), or, over https only, a "
            f"credential of azure-identity{_why_no_sas(account_url)}"
        )
    return endpoint


def _why_no_sas(account_url: str) -> str:
    """Return why the query of a URL is not a SAS; `""` if it is one, or there is none."""
    query = account_url.partition("?")[2]
    if not query or is_sas(query):
        return ""
    names = [name for name, _ in parse_qsl(query) if not SAS_KEYS.fullmatch(name)]
    if not names:
        return "; the SAS in the URL is not complete: it has no sig"
    what = quoted(names[0]) if names[0].isidentifier() else "a part"
    return f"; the query has {what}, which no SAS has: settings are keyword arguments"
