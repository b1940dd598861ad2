"""A server of tests ends with everything that it has started."""

import asyncio
import socket

from tcp_servers import HOST, TcpServer
from waiting import eventually


class LeavesTask(TcpServer):
    """Starts a task for each connection, and does not wait for it."""

    task: "asyncio.Task[bool] | None" = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.task = asyncio.create_task(asyncio.Event().wait())


def test_no_task_is_pending_when_the_loop_of_a_server_is_closed() -> None:
    with LeavesTask() as server, socket.create_connection((HOST, server.port)):
        task = eventually(lambda: server.task)
    assert task.cancelled()
