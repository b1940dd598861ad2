"""Proxy in front of a storage server that counts requests and fails on demand.

It speaks HTTP/1.1 with keep-alive; every method may be called between any two requests. As a
separate process, for benchmarks:
`python tools/fault_proxy.py http://127.0.0.1:10000/devstoreaccount1 --delay-ms 10`.
"""

import argparse
import asyncio
import signal
from collections.abc import Callable
from urllib.parse import urlsplit

from http_faults import Backend, Exchange, Fault, Request
from http_messages import Message, read_request
from tcp_servers import HOST, TcpServer

Rewrite = str | None | Callable[[str | None], str | None]


class FaultProxy(TcpServer):
    """Proxy to one server.

    The client uses `endpoint` in place of the server's: a shared-key signature covers the path,
    which is the same, and not the host.

    Attributes:
        endpoint: address for clients.
        requests: all requests so far, in the order of their arrival.
        busiest: maximum number of requests that were unanswered at the same time.
        delay: seconds by which every response is delayed, as from a distant server.
    """

    def __init__(self, backend: str, *, delay: float = 0.0) -> None:
        address = urlsplit(backend)
        self._address = (address.hostname or "127.0.0.1", address.port or 80)
        self.delay = delay
        self.requests: list[Request] = []
        self.busiest = 0
        self._faults: tuple[Fault, ...] = ()
        self._headers: dict[str, Rewrite] = {}
        self._unanswered = 0
        super().__init__()
        self.endpoint = f"http://{HOST}:{self.port}{address.path}"

    def on(self, method: str | None = None, path: str = "", times: int | None = None) -> Fault:
        """Choose requests; a method of the returned fault then decides what happens to them.

        The first matching fault applies: `proxy.on("PUT", "/ownership/", times=1).drop()`.
        """
        fault = Fault(method, path, times)
        self._faults = (*self._faults, fault)
        return fault

    def rewrite(self, header: str, value: Rewrite) -> None:
        """Set, remove (`None`) or compute (a function of the old value) a response header."""
        self._headers = {**self._headers, header: value}

    def heal(self) -> None:
        """Forget all faults, rewritten headers and the delay."""
        self._faults, self._headers, self.delay = (), {}, 0.0

    def count(self, method: str | None = None, path: str = "") -> int:
        """Return how many requests arrived with this method and this string in path or query."""
        return sum(method in (None, r.method) and path in r.target for r in [*self.requests])

    def forget(self) -> None:
        """Reset the counts."""
        self.requests.clear()
        self.busiest = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        backend = Backend(*self._address)
        try:
            # A connection accepted just before the server went down is closed with it.
            while self._server is not None and (message := await read_request(reader)):
                if not await self._exchange(Exchange(message, backend), writer):
                    break
        finally:
            backend.close()

    async def _exchange(self, exchange: Exchange, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection stays open."""
        message = exchange.message
        request = Request(message.method, message.target, message.head)
        self.requests.append(request)
        self._unanswered += 1
        self.busiest = max(self.busiest, self._unanswered)
        try:
            answer = await self._answer(request, exchange)
            if answer is None:
                return False
            request.status = answer.status
        finally:
            self._unanswered -= 1
        await _send(answer, writer, exchange.seconds_per_byte)
        return not (answer.closes or exchange.message.closes)

    async def _answer(self, request: Request, exchange: Exchange) -> Message | None:
        fault = next((fault for fault in self._faults if fault.takes(request)), None)
        if fault is None or fault.act is None:
            answer: Message | None = await exchange.forward()
        else:
            fault.hits += 1
            answer = await fault.act(exchange)
        if self.delay:
            await asyncio.sleep(self.delay)
        return answer and self._rewritten(answer)

    def _rewritten(self, answer: Message) -> Message:
        for name, value in self._headers.items():
            new = value(answer.header(name)) if callable(value) else value
            answer = answer.with_header(name, new)
        return answer


async def _send(answer: Message, writer: asyncio.StreamWriter, seconds_per_byte: float) -> None:
    if not seconds_per_byte:
        writer.write(answer.head + answer.body)
        return
    for byte in answer.head + answer.body:
        writer.write(bytes((byte,)))
        await asyncio.sleep(seconds_per_byte)


def main() -> None:
    """Run one until SIGTERM or Ctrl-C; the first line printed is its endpoint."""
    parser = argparse.ArgumentParser(description="A delaying proxy in front of a storage server.")
    parser.add_argument("backend", help="such as http://127.0.0.1:10000/devstoreaccount1")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="held back, per answer")
    options = parser.parse_args()
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # in all threads: only sigwait receives them
    with FaultProxy(options.backend, delay=options.delay_ms / 1000) as proxy:
        print(proxy.endpoint, flush=True)
        signal.sigwait(ends)


if __name__ == "__main__":
    main()
