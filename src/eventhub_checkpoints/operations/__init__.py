"""Operations on consumer groups: see how far they are, and correct their positions.

The command `ehcp` is a thin layer over this package, and programs can use the same functions.
Decisions are pure functions of what was read; stores and hubs are the synchronous ones.

- `groups`: the consumer groups of a store, their members and the age of their ownerships.
- `lag`: how far a group is behind each partition of a hub. `states`: what a window of such samples
  says about a partition. `lag_seconds`: the same lag as an age. `samples`: a file of such samples.
- `positions`: stored positions, and the files for them. `change`: stores them, also under running
  consumers. `recorded_change`: what every command that changes positions does; `journal`: records
  of such commands. What they store is planned by `reset`, `preview` (a reset that is looked at
  before it is carried out), `restore` (undo), `exchange` (import and copy) and `delete`. `history`:
  earlier checkpoints, of stores that keep them.
- `peek`: the events around a checkpoint or a time, and the newest. `search`: events by text, key
  or property.
- `dead_letters`: dead letters of a file, a table or a hub, and sending them back.
- `doctor`: findings about a group, and what mends them. `cost`: prices of requests and servers.
- `transfer`: the rule of what is copied, for import, copy, mirror and migrate. `mirror`: copies of
  a group's checkpoints, again and again. `move`: a group that changes its store while its consumers
  run. `fence`: ownerships that `change` and `move` take. `migrate`: positions that older programs
  saved.
- `scale`: what an autoscaler may ask for. `monitor`: groups that are polled in the background.

Whatever reads a store raises `StoreError` if it fails, and whatever asks a hub
`HubUnavailableError` if it does not answer in time; the docstrings name only other errors.
"""

from eventhub_checkpoints.operations.change import Force, change_positions
from eventhub_checkpoints.operations.doctor import findings
from eventhub_checkpoints.operations.doctor.examination import examine_group
from eventhub_checkpoints.operations.doctor.finding import (
    Finding,
    GroupSnapshot,
    Limits,
    Severity,
)
from eventhub_checkpoints.operations.doctor.fixes import Fix, mended, planned
from eventhub_checkpoints.operations.groups import Group, Member, group, groups
from eventhub_checkpoints.operations.lag import GroupLag, PartitionLag, lag
from eventhub_checkpoints.operations.mirror import Mirror
from eventhub_checkpoints.operations.monitor import Monitor, PolledGroup
from eventhub_checkpoints.operations.move import Move
from eventhub_checkpoints.operations.peek import PeekedEvent, PositionAtTime, peek, positions_at
from eventhub_checkpoints.operations.positions import Position, read_positions
from eventhub_checkpoints.operations.reset import PartitionReset, plan_reset
from eventhub_checkpoints.operations.scale import Demand, demand
from eventhub_checkpoints.operations.states import State, state_of

__all__ = [
    "Demand",
    "Finding",
    "Fix",
    "Force",
    "Group",
    "GroupLag",
    "GroupSnapshot",
    "Limits",
    "Member",
    "Mirror",
    "Monitor",
    "Move",
    "PartitionLag",
    "PartitionReset",
    "PeekedEvent",
    "PolledGroup",
    "Position",
    "PositionAtTime",
    "Severity",
    "State",
    "change_positions",
    "demand",
    "examine_group",
    "findings",
    "group",
    "groups",
    "lag",
    "mended",
    "peek",
    "plan_reset",
    "planned",
    "positions_at",
    "read_positions",
    "state_of",
]
