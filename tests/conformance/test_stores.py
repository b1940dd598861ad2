"""Stores that do a thing in their own way keep the contract; the others: `stores/backends`."""

import uuid
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from sound import Sound, StallingRows

from conformance_checks import PROMPT
from eventhub_checkpoints.conformance import certify

pytestmark = pytest.mark.waits


class ServerChooses(Sound):
    """Its etags and versions are the server's, as on Blob: nobody can propose them."""

    makes_own_etags = True

    def try_claim(self, proposal: Any) -> Any:
        return super().try_claim(replace(proposal, new_etag=uuid.uuid4().hex))

    def write_checkpoint(self, checkpoint: Any, seen: Any) -> Any:
        return super().write_checkpoint(replace(checkpoint, version=uuid.uuid4().hex), seen)


class ClaimsInOneTrip(Sound):
    """It claims a batch in one trip, as a database may."""

    def try_claims(self, proposals: Any) -> Any:
        return [self.try_claim(proposal) for proposal in proposals]


@pytest.mark.parametrize(
    ("kind", "guarantees"),
    [(ServerChooses, {"G1", "G2", "G3"}), (ClaimsInOneTrip, {"G1", "G2", "G8"})],
)
def test_a_store_that_does_a_thing_in_its_own_way_keeps_the_contract(
    kind: Any, guarantees: set[str]
) -> None:
    rows = StallingRows()
    checks = [check for check in PROMPT if guarantees & set(check.guarantees)]
    report = certify(partial(kind, rows), rows.accessors(), checks=checks)
    assert not report.failed, report.text()
    assert not report.not_shown, report.text()
