"""Store, hub and consumer group that a command works on: options, environment and profiles.

An option comes before its environment variable, and that before the profile.
"""

import functools
import inspect
import os
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from platformdirs import user_config_path

from eventhub_checkpoints._shared.clouds import in_cloud_of
from eventhub_checkpoints._shared.deadline import UNREACHABLE_TIMEOUT
from eventhub_checkpoints._shared.durations import parse_duration
from eventhub_checkpoints._shared.secrets import holds_secret, quoted
from eventhub_checkpoints._shared.settings import nearest_first
from eventhub_checkpoints._shared.wrapping import declares
from eventhub_checkpoints.abilities import FullCheckpointStore
from eventhub_checkpoints.cli.durations import duration_option
from eventhub_checkpoints.cli.output import shown_path
from eventhub_checkpoints.errors import CheckpointStoreError, ConfigurationError
from eventhub_checkpoints.operations.lag import Missing
from eventhub_checkpoints.operations.monitor import PolledGroup
from eventhub_checkpoints.receive.address import DEFAULT_CONSUMER_GROUP
from eventhub_checkpoints.receive.amqp.address import HubAddress
from eventhub_checkpoints.receive.ranges import OPERATION_TIMEOUT
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.registry import open_store, shown
from eventhub_checkpoints.sdk.consumer import EXPIRES_AFTER
from eventhub_checkpoints.stores.backends import BLOB

CONFIGURATION = "EHCP_CONFIG"
"""Variable with the path of the file of profiles."""
UNKNOWN_STATUS = 3
"""Exit status of `check` and `doctor` where they could not read something."""
DEFAULT_CREDENTIAL = "DefaultAzureCredential"
NO_STORE = f"no store: pass --store URL or set EHCP_STORE, for example {BLOB.schemes['https'].form}"
HUB_FORM = "NAMESPACE.servicebus.windows.net/HUB"
NO_HUB = (
    f"no hub: pass --hub or set EHCP_HUB, to a connection string with EntityPath or to {HUB_FORM}"
)


DEFAULTS = {"group": DEFAULT_CONSUMER_GROUP}
"""Values of options that nothing has named."""
KINDS: Mapping[type, str] = {str: "a string", dict: "a table"}
"""Types of a profile's values, for errors."""


@dataclass(frozen=True, slots=True)
class Target:
    """Store, hub and group of a command; its `repr` shows no secret.

    Attributes:
        store: URL of the store, or a mapping of the file of profiles.
        hub: connection string of the hub, or `NAMESPACE/HUB`.
        group: name of the consumer group.
        credential: name of a class of azure-identity, for a hub named by its address.
        expires_after: seconds after which an ownership that was not renewed counts as expired.
        timeout: seconds for the queries to the hub, and for each call of the store.
        unreachable_timeout: seconds for which they try to connect to a server that refuses
            connections or is not known.
        profile: name of the profile that was read; None if none was.
        of_profile: its values, by option.
    """

    store: str | Mapping[str, Any] | None = field(default=None, repr=False)
    hub: str | None = field(default=None, repr=False)
    group: str = DEFAULT_CONSUMER_GROUP
    credential: str = DEFAULT_CREDENTIAL
    expires_after: float = EXPIRES_AFTER
    timeout: float = OPERATION_TIMEOUT
    unreachable_timeout: float = UNREACHABLE_TIMEOUT
    profile: str | None = None
    of_profile: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def options_for(self, scope: Scope) -> str:
        """Return the options that name the store and a group, for a command that is to be pasted.

        What the environment has is left out, as the same shell has it; a secret is left out, too.

        Args:
            scope: the group, which may be of another hub of the store.
        """
        address, hub = "/".join(scope[:2]), self.hub
        of_same_hub = replace(self, group=scope.consumer_group)
        if hub is None or of_same_hub.scope.folded != scope.folded:
            hub = address
        words: list[str] = []
        for name, value in {"store": self.store, "hub": hub, "group": scope.consumer_group}.items():
            if self.profile and self.of_profile.get(name) == value:
                words += [] if "--profile" in words else ["--profile", self.profile]
            elif value and value != os.environ.get(f"EHCP_{name.upper()}", DEFAULTS.get(name)):
                if holds_secret(text := str(value)):
                    text = address if name == "hub" else shown(text)
                words += [f"--{name}", text]
        return "".join(f" {shlex.quote(word)}" for word in words)

    @property
    def named_store(self) -> str | Mapping[str, Any]:
        """Return the URL of the store, or its mapping.

        Raises:
            ConfigurationError: none is named.
        """
        if self.store is None:
            raise ConfigurationError(NO_STORE)
        return self.store

    @contextmanager
    def open_store(self) -> Iterator[FullCheckpointStore]:
        """Open the store, and close it at the end.

        Raises:
            ConfigurationError: none is named, it cannot be opened, or only one process sees it.
        """
        limits = {
            "operation_timeout": self.timeout,
            "unreachable_timeout": self.unreachable_timeout,
        }
        with open_store(self.named_store, **limits) as store:
            if declares(store, "for_one_process"):
                raise ConfigurationError(
                    f"{shown(self.named_store)} exists in one process only: this command would see "
                    "nothing of it, and its changes would end with the command; name a store that "
                    "the consumers share"
                )
            yield store

    @property
    def address(self) -> HubAddress:
        """Return the address of the hub.

        Raises:
            ConfigurationError: none is named, or it is malformed.
        """
        if self.hub is None:
            raise ConfigurationError(NO_HUB)
        if "=" in self.hub:
            address = HubAddress.from_connection_string(self.hub, self.group)
        else:
            names = self._names(self.hub)
            address = HubAddress.from_credential(*names, self.credential, self.group)
        return replace(address, unreachable_timeout=self.unreachable_timeout)

    @property
    def scope(self) -> Scope:
        """Return the names under which the store keeps the group; needs no credential.

        Raises:
            ConfigurationError: as for `address`.
        """
        if self.hub is None or "=" in self.hub:
            return self.address.scope()
        return Scope.checked(*self._names(self.hub), self.group)

    def has_store_of(self, other: "Target") -> bool:
        """Return whether two targets name the same store.

        Two URLs may name one place. `Move`, which would do harm there, looks into the stores.
        """
        return self.store == other.store

    @staticmethod
    def _names(hub: str) -> tuple[str, str]:
        namespace, slash, eventhub_name = hub.removeprefix("sb://").partition("/")
        if not slash or not eventhub_name or "/" in eventhub_name:
            raise ConfigurationError(
                f"the hub is {quoted(hub)}; expected a connection string with EntityPath, or "
                f"{in_cloud_of(namespace, HUB_FORM)}"
            )
        return namespace, eventhub_name


def polled_groups(
    targets: Sequence[Target],
    stack: ExitStack,
    missing: Missing,
    through: str | None,
    *,
    has_seconds: bool = False,
) -> list[PolledGroup]:
    """Open the stores of targets, each once, and return what to poll.

    Args:
        targets: stores, hubs and groups.
        stack: closes the stores.
        missing: see `PolledGroup`, as for `through` and `has_seconds`.
        through: consumer group through which events are read.
        has_seconds: whether events are read for the lag in seconds.

    Raises:
        ConfigurationError: a target names no store or no hub, or a malformed one.
    """
    polled: list[PolledGroup] = []
    for number, target in enumerate(targets):
        same = next((n for n in range(number) if targets[n].has_store_of(target)), None)
        store = stack.enter_context(target.open_store()) if same is None else polled[same].store
        polled.append(
            PolledGroup(
                store,
                target.address,
                missing,
                target.expires_after,
                target.timeout,
                through,
                has_seconds=has_seconds,
            )
        )
    return polled


PANEL = "Store, hub and group"
Option = functools.partial(typer.Option, rich_help_panel=PANEL)
OPTIONS: dict[str, Any] = {
    "store": Annotated[
        str | None, Option(envvar="EHCP_STORE", metavar="URL", help="URL of the store.")
    ],
    "hub": Annotated[
        str | None,
        Option(
            envvar="EHCP_HUB", metavar="HUB", help="Connection string of the hub, or NAMESPACE/HUB."
        ),
    ],
    "group": Annotated[
        str | None,
        Option(
            "--group",
            "-g",
            envvar="EHCP_GROUP",
            metavar="NAME",
            help="Consumer group. [default: $Default]",
        ),
    ],
    "credential": Annotated[
        str | None,
        Option(
            envvar="EHCP_CREDENTIAL",
            metavar="CLASS",
            help=f"Class of azure-identity for NAMESPACE/HUB. [default: {DEFAULT_CREDENTIAL}]",
        ),
    ],
    "expires_after": Annotated[
        float | None,
        duration_option(
            rich_help_panel=PANEL,
            help="Time after which an ownership that was not renewed counts as expired. "
            f"[default: {EXPIRES_AFTER:g}]",
        ),
    ],
    "timeout": Annotated[
        float | None,
        duration_option(
            rich_help_panel=PANEL,
            help=f"Time to wait for an answer. [default: {OPERATION_TIMEOUT:g}; "
            f"{UNREACHABLE_TIMEOUT:g} for a server that refuses connections or is not known]",
        ),
    ],
    "profile": Annotated[
        str | None,
        Option(
            envvar="EHCP_PROFILE",
            metavar="NAME",
            help="Table `[profiles.NAME]` of the configuration file.",
        ),
    ],
}
"""The options of every command on a group; all but the last are fields of `Target`."""

LagThrough = Annotated[
    str | None,
    typer.Option(
        metavar="GROUP",
        envvar="EHCP_THROUGH",
        help="Consumer group to read the first unprocessed events through. "
        "[default: the group itself, where a partition has no owner]",
    ),
]

ReadThrough = Annotated[
    str | None,
    typer.Option(
        metavar="GROUP",
        help="Consumer group through which events are read. [default: the group itself, or "
        "$Default while it has consumers]",
    ),
]


REPEATED: dict[str, Any] = {
    **OPTIONS,
    **{
        name: Annotated[list[str] | None, *OPTIONS[name].__metadata__]
        for name in ("group", "profile")
    },
}
"""The same options for a command on several groups: two of them can be repeated."""


def on_target(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `OPTIONS`; its parameter `target` receives them."""
    return with_options(command, "target", OPTIONS, read_target)


def on_targets(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `REPEATED`; its parameter `targets` receives them."""
    return with_options(command, "targets", REPEATED, read_targets)


def or_unknown(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command whose status is a verdict end with `UNKNOWN_STATUS` where it fails.

    The status of other failures, 1, would be a warning.
    """

    @functools.wraps(command)
    def run(**values: Any) -> None:
        try:
            command(**values)
        except CheckpointStoreError as error:
            typer.echo(f"UNKNOWN: {error}", err=True)
            raise typer.Exit(UNKNOWN_STATUS) from None

    return run


def with_options(
    command: Callable[..., None],
    parameter_name: str,
    options: Mapping[str, Any],
    read: Callable[..., Any],
) -> Callable[..., None]:
    """Replace a parameter of a command by options, from which `read` computes its value."""
    own = inspect.signature(command).parameters
    hints = get_type_hints(command, include_extras=True)

    def run(**values: Any) -> None:
        chosen = {name: values.pop(name) for name in options}
        command(**{parameter_name: read(**chosen)}, **values)

    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in options.items()
    ]
    kept = [
        parameter.replace(annotation=hints[name])
        for name, parameter in own.items()
        if name != parameter_name
    ]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = inspect.Signature([*kept, *added])  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in [*kept, *added]}
    return run


def read_targets(
    *, profile: list[str] | None, group: list[str] | None, **options: Any
) -> list[Target]:
    """Return a target for each profile and each group in it.

    Raises:
        ConfigurationError: a profile does not exist, or has an invalid key or value.
    """
    profiles: Sequence[str | None] = profile or [None]
    groups: Sequence[str | None] = group or [None]
    return [
        read_target(profile=each_profile, group=each_group, **options)
        for each_profile in profiles
        for each_group in groups
    ]


def read_target(*, profile: str | None, **options: Any) -> Target:
    """Return the target that options and profile name.

    Raises:
        ConfigurationError: the profile does not exist, or has an invalid key or value.
    """
    of_profile = read_profile(profile) if profile else {}
    chosen = of_profile | {name: value for name, value in options.items() if value is not None}
    # Whoever names a time wants to wait that long, also for a server that is about to start.
    unreachable_timeout = chosen.get("timeout", UNREACHABLE_TIMEOUT)
    return Target(
        **chosen, unreachable_timeout=unreachable_timeout, profile=profile, of_profile=of_profile
    )


def read_profile(name: str) -> dict[str, Any]:
    """Read a profile from the configuration file.

    Raises:
        ConfigurationError: the file or the profile does not exist, or has an invalid key or value.
    """
    path = Path(
        os.environ.get(CONFIGURATION)
        or user_config_path("eventhub-checkpoints", appauthor=False) / "config.toml"
    )
    file = shown_path(path)
    try:
        profiles = tomllib.loads(path.read_text("utf-8")).get("profiles", {})
    except OSError as error:
        raise ConfigurationError(
            f"profile {quoted(name)}: {file} cannot be read ({error.strerror}); create it, or name "
            f"another file in {CONFIGURATION}"
        ) from None
    except (ValueError, RecursionError) as error:
        # Besides TOMLDecodeError: not UTF-8, a number of too many digits, nested too deeply. The
        # message has a line and a column, and quotes no value.
        raise ConfigurationError(f"profile {quoted(name)}: {file} is not TOML: {error}") from None
    if not isinstance(profiles, dict) or not isinstance(profiles.get(name), dict):
        known = ", ".join(nearest_first(name, map(str, profiles))) or "none"
        raise ConfigurationError(f"profile {quoted(name)} is not in {file}; it has: {known}")
    return checked_profile(name, profiles[name], file)


def checked_profile(name: str, profile: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Return the values of a profile.

    Raises:
        ConfigurationError: it has an unknown key, or a value of another type.
    """
    kinds: dict[str, tuple[type, ...]] = {name: (str,) for name in OPTIONS if name != "profile"}
    kinds["store"] = (str, dict)
    checked = dict(profile)
    for key, value in profile.items():
        if key not in kinds:
            known = ", ".join(nearest_first(key, kinds))
            raise ConfigurationError(
                f"profile {quoted(name)} in {file} has the key {quoted(key)}; expected {known}"
            )
        what = f"{key} of profile {quoted(name)} in {file}"
        if key in ("expires_after", "timeout"):
            checked[key] = parse_duration(value, what)
        elif not isinstance(value, kinds[key]):
            expected = " or ".join(KINDS[kind] for kind in kinds[key])
            raise ConfigurationError(f"{what} is {quoted(value)}; expected {expected}")
    return checked
