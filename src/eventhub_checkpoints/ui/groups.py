"""Groups that the pages show: those that an operator has named, and those that appear later."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from eventhub_checkpoints.operations.monitor import PolledGroup, groups_to_poll
from eventhub_checkpoints.records import Scope


@dataclass
class ShownGroups:
    """Groups to show.

    Attributes:
        requested: those that the operator has named.
        others: groups of the stores whose hub was not named; only their names are shown.
    """

    requested: Sequence[PolledGroup]
    others: Sequence[Scope] = ()
    _known: dict[Scope, tuple[int, PolledGroup]] = field(default_factory=dict)

    def find(self) -> list[PolledGroup]:
        """Return the groups to poll, from the lists of the stores now.

        Raises:
            StoreError: a store could not be read.
        """
        chosen, self.others = groups_to_poll(self.requested)
        found = {
            polled.scope.folded: (number, polled)
            for number, groups in enumerate(chosen)
            for polled in groups
        }
        # The first spelling of a group stays, as its address is one.
        self._known = {**found, **self._known}
        return [polled for _, polled in self._known.values()]

    def of(self, scope: Scope) -> PolledGroup | None:
        """Return the group with these names, in any case; None if it is not polled."""
        known = self._known.get(scope.folded)
        return known and known[1]

    def request_of(self, polled: PolledGroup) -> int:
        """Return the number of the request for which a group is shown."""
        return self._known[polled.scope.folded][0]
