"""Which clients a test of the processing layer runs with.

`simulated` is the SDK's client for asyncio on the simulated clock: nearly every test of the folder
runs with it, in no time and with exact seconds. `sync` and `aio` are the real clients on a local
hub. The sync code is derived from the async one, so what depends on time runs with it in
`tox -e long` only, on the real clock.
"""

import pytest

SIMULATED = "simulated"
LONG_SYNC = pytest.param("sync", marks=[pytest.mark.long, pytest.mark.waits])
LONG_AIO = pytest.param("aio", marks=[pytest.mark.long, pytest.mark.waits])

EVERY_CLIENT = pytest.mark.parametrize("variant", [SIMULATED, "sync", "aio"], indirect=True)
"""What happens, whatever the time: with the real clients in the deterministic suite, too."""
REAL_CLIENTS = pytest.mark.parametrize("variant", ["sync", "aio"], indirect=True)
ONLY_SIMULATED = pytest.mark.parametrize("variant", [SIMULATED], indirect=True)
"""What only an aio client does."""
REAL_AIO = pytest.mark.parametrize("variant", ["aio", LONG_SYNC], indirect=True)
"""What needs more of a hub than the simulated one has."""
ONLY_CODE = pytest.mark.parametrize("variant", [SIMULATED, "sync"], indirect=True)
"""What needs no client, and so takes no time with the sync code either."""
ONLY_SYNC = pytest.mark.parametrize("variant", ["sync"], indirect=True)
ONLY_LONG_SYNC = pytest.mark.parametrize("variant", [LONG_SYNC], indirect=True)
ONLY_LONG_AIO = pytest.mark.parametrize("variant", [LONG_AIO], indirect=True)
