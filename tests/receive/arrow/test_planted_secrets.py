"""A secret that was passed to the wrong argument of `read_batches` comes back in no message."""

import traceback

import pytest

from eventhub_checkpoints import InvalidRecordError, Scope
from eventhub_checkpoints.arrow import EventPosition, HubAddress, ReadSettings

HIDDEN = "aGlkZGVuIGtleQhiddenaGlkZGVuIGtleQhiddenaGk="
STRING = f"Endpoint=sb://ns/;SharedAccessKeyName=name;SharedAccessKey={HIDDEN};EntityPath=orders"
PLANTED = (
    STRING,
    f"SharedAccessSignature sr=sb%3A%2F%2Fns&sig={HIDDEN}&se=1&skn=name",
    f"postgresql://user:{HIDDEN}@host/database",
    f"Bearer {HIDDEN}",
)


def arguments(secret, scope):
    yield {"hub": secret.replace("Endpoint", "endpont")}
    yield {"hub": {secret: secret}}
    yield {"hub": STRING, "scope": secret}
    for name in scope._fields:
        yield {"scope": scope._replace(**{name: secret})}
    yield {"store": [secret]}
    yield {"store": secret.replace("postgresql", "postgrsql")}
    for places in (secret, {secret: 1}, {"0": secret}, EventPosition.from_offset(secret)):
        yield {"start": places}
        yield {"until": places}
    yield {"partition_ids": secret}
    yield {"partition_ids": [secret]}
    yield {"partitions_at_once": secret}
    yield {"missing": secret}
    yield {"settings": ReadSettings(receive_path="fast", rows_per_batch=10), "missing": [secret]}


def test_no_argument_is_echoed_with_a_secret(variant, address, scope, caplog, searched):
    """Every argument with a secret of each kind."""
    # An offset that the hub does not know is met with silence, for the operation's time.
    quick = {"settings": ReadSettings(operation_timeout=0.3, receiver_timeout=1)}
    shown = []
    for given in [given for secret in PLANTED for given in arguments(secret, scope)]:
        try:
            with variant.read_batches(**{"hub": address, **quick, **given}) as batches:
                batches.to_table()
        except Exception as error:
            lines = traceback.TracebackException.from_exception(error).format()
            text = "\n".join(one for one in lines if "File " not in one)
            shown += [given] if "hidden" in text else []
        searched("calls with a secret as an argument", 1)
    assert not shown
    assert "hidden" not in caplog.text


@pytest.mark.parametrize("secret", PLANTED)
def test_a_scope_that_holds_a_secret_is_refused_without_it(
    variant, address, kept, scope, secret, caplog
):
    # A scope that is built with checks has refused it already.
    names = scope.fully_qualified_namespace, "orders", secret.replace("/", "-")
    wrong = Scope._make(names)
    expected = "consumer_group .* expected a name, not a connection string"
    with (
        pytest.raises(InvalidRecordError, match=expected) as failure,
        variant.read_batches(address, wrong, kept.url) as batches,
    ):
        batches.to_table()
    assert "hidden" not in str(failure.value)
    assert "hidden" not in caplog.text


def test_a_hub_of_which_a_name_holds_a_secret_is_refused(variant):
    for names in ((STRING, "orders"), ("ns", STRING)):
        with pytest.raises(ValueError, match=r"SharedAccessKey=\*\*\*'; expected the"):
            HubAddress.from_credential(*names, "DefaultAzureCredential")
