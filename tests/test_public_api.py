"""What the package promises by name: documented, typed, picklable, and without surprises."""

import importlib
import inspect
import os
import pickle
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import files, version
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest

import eventhub_checkpoints
from eventhub_checkpoints import aio, errors
from eventhub_checkpoints.stores.backends import BACKENDS

PACKAGE = Path(eventhub_checkpoints.__file__).parent
API_PAGES = Path(__file__).resolve().parent.parent / "docs/reference/api"
EXTRAS = {
    "operations.migrate": "blob",
    "blob": "blob",
    "aio.blob": "blob",
    "aio.table": "table",
    "arrow": "arrow",
    "aio.arrow": "arrow",
    "receive": "arrow",
    "consume": "arrow",
    "send": "arrow",
    "spark": "spark",
}
"""The extra that a public module and those below it may need."""


INTERNAL = ("stores", "processing", "amqp", "receive.arrow", "receive.amqp.decoder")
"""Packages whose public names are imported from the package's root, or are nobody's."""


def public_modules() -> list[str]:
    found = pkgutil.walk_packages([str(PACKAGE)], f"{eventhub_checkpoints.__name__}.")
    names = [module.name for module in found]
    return [
        name
        for name in [eventhub_checkpoints.__name__, *names]
        if not any(part.startswith("_") for part in name.split("."))
        if not f"{name}.".startswith(tuple(f"eventhub_checkpoints.{one}." for one in INTERNAL))
    ]


MODULES = public_modules()


def public_names(module: ModuleType) -> Iterator[tuple[str, object]]:
    """The functions and classes that a module defines, and the classes' own methods."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(value):
            yield f"{module.__name__}.{name}", value
        elif inspect.isclass(value):
            yield f"{module.__name__}.{name}", value
            if getattr(value, "_is_protocol", False):
                continue  # its text says what the members are
            for member, attribute in vars(value).items():
                is_documentable = callable(attribute) or isinstance(attribute, property)
                if not member.startswith("_") and is_documentable:
                    yield f"{module.__name__}.{name}.{member}", getattr(value, member)


@pytest.mark.parametrize("module", [eventhub_checkpoints, aio], ids=lambda module: module.__name__)
def test_all_lists_what_is_there_in_order(module: ModuleType) -> None:
    assert list(module.__all__) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_all_leaves_out_no_class_and_no_function() -> None:
    public = {
        name
        for name, value in vars(eventhub_checkpoints).items()
        if not name.startswith("_") and (inspect.isclass(value) or inspect.isfunction(value))
    }
    assert public == set(eventhub_checkpoints.__all__)


def test_every_error_is_exported() -> None:
    defined = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    assert defined <= set(eventhub_checkpoints.__all__)


def test_the_other_variant_has_the_same_stores() -> None:
    assert set(aio.__all__) <= set(eventhub_checkpoints.__all__)


def test_every_public_module_and_name_has_a_docstring() -> None:
    modules = [importlib.import_module(name) for name in MODULES]
    named = [*((each.__name__, each) for each in modules), *chain(*map(public_names, modules))]
    assert len(named) > 1000
    assert [name for name, value in named if not inspect.getdoc(value)] == []


def test_the_maps_modules_exist() -> None:
    lines = (eventhub_checkpoints.__doc__ or "").splitlines()
    promised = [
        word.strip("`,;:")
        for line in lines
        if line.startswith("- `")
        for word in line.partition(":")[0].removeprefix("- ").split()
    ]
    assert promised
    for name in promised:
        assert f"eventhub_checkpoints.{name}" in MODULES


def test_the_types_are_shipped() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_the_version_is_the_distributions() -> None:
    assert eventhub_checkpoints.__version__ == version("eventhub-checkpoints")
    assert files("eventhub-checkpoints")


IMPORTED_FROM = [
    "",
    *(f".{backend.name}" for backend in BACKENDS),
    ".checkpointer",
    ".processor",
    ".dead_letters",
    ".base",
    ".abilities",
    ".receive",
    ".receive.kafka",
    ".spark",
    ".arrow",
    ".conformance",
    ".localhub",
    ".testing",
    ".iothub_react",
]
"""The modules that users import from; a name that several have is documented for the first."""


def documented_names() -> Iterator[str]:
    """Where the API pages should have each public name."""
    seen: set[int] = set()
    for module in (
        importlib.import_module(f"eventhub_checkpoints{name}") for name in IMPORTED_FROM
    ):
        own = [name for name, value in vars(module).items() if is_own_class(module, name, value)]
        for name in getattr(module, "__all__", own):
            if id(getattr(module, name)) not in seen:
                seen.add(id(getattr(module, name)))
                yield f"{module.__name__}.{name}"


def is_own_class(module: ModuleType, name: str, value: object) -> bool:
    is_own = getattr(value, "__module__", None) == module.__name__
    return is_own and (name.endswith("Store") or name.startswith("read_"))


def test_the_api_pages_have_every_public_name_once_where_users_import_it() -> None:
    page = "\n".join(each.read_text() for each in sorted(API_PAGES.glob("*.md")))
    # A function with the name of its module needs its full path, and is shown under the other.
    page = re.sub(
        r"^::: .*\n    options:\n      heading: (.*)$", r"::: \1", page, flags=re.MULTILINE
    )
    assert sorted(re.findall(r"^::: (.*)$", page, re.MULTILINE)) == sorted(documented_names())


ERRORS = [
    errors.CheckpointStoreError("text"),
    errors.ConfigurationError("text"),
    errors.MissingDriverError.of_extra("Blob Storage", "blob"),
    errors.InvalidRecordError("offset", 1.5, "a text"),
    errors.StaleCheckpointError("0", 5, 9),
    errors.InvalidCheckpointError("0", "The supplied offset is invalid"),
    errors.PoisonError("0", 5),
    errors.DataLossError("0", 5, 9, "text"),
    errors.HubUnavailableError("text"),
    errors.StoreError("text"),
    errors.StoreUnavailableError("text"),
    errors.StoreAccessError("text"),
    errors.StoreNotReadyError("text"),
]


def test_every_error_is_among_the_examples() -> None:
    defined = {value for value in vars(errors).values() if inspect.isclass(value)}
    exceptions = {value for value in defined if issubclass(value, BaseException)}
    assert {type(error) for error in ERRORS} == exceptions


def test_every_error_survives_pickling() -> None:
    again = [pickle.loads(pickle.dumps(error)) for error in ERRORS]
    for before, after in zip(ERRORS, again, strict=True):
        assert type(after) is type(before)
        assert (str(after), vars(after)) == (str(before), vars(before))


def test_every_error_is_one_of_ours() -> None:
    base = eventhub_checkpoints.CheckpointStoreError
    assert [type(error) for error in ERRORS if not isinstance(error, base)] == []


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.ConfigurationError, ValueError),
        (errors.InvalidRecordError, ValueError),
        (errors.MissingDriverError, ImportError),
    ],
)
def test_an_error_is_also_what_python_calls_it(error: type, builtin: type) -> None:
    assert issubclass(error, builtin)


IMPORTS = """
import importlib, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.startswith({blocked!r}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
for name in {modules!r}:
    try:
        importlib.import_module(name)
        print(name, "works")
    except ImportError as error:
        print(name, error)
"""


@pytest.mark.waits
def test_a_public_module_needs_no_extra_but_its_own() -> None:
    blocked = ("azure.storage", "aiohttp", "pyspark", "pyarrow", "typer", "rich")
    modules = [name for name in MODULES if ".cli" not in name]
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS.format(blocked=blocked, modules=modules)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(modules)
    for name, _, outcome in (line.partition(" ") for line in lines):
        below = name.removeprefix("eventhub_checkpoints.") + "."
        extra = next((EXTRAS[key] for key in EXTRAS if below.startswith(f"{key}.")), None)
        assert outcome == "works" or f"eventhub-checkpoints[{extra}]" in outcome, (
            f"{name}: {outcome}"
        )
