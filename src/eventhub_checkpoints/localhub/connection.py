"""Connection to a client: headers, SASL, open and close; frames in, and bytes out."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from typing import TYPE_CHECKING, cast

from eventhub_checkpoints.amqp import performatives as amqp
from eventhub_checkpoints.amqp.types import CodecError
from eventhub_checkpoints.localhub.conditions import idle, invalid
from eventhub_checkpoints.localhub.session import Session
from eventhub_checkpoints.localhub.tokens import INVALID_SIGNATURE, TokenError, expiry_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from eventhub_checkpoints.amqp.performatives import Composite
    from eventhub_checkpoints.localhub.server import Faults, Server

MAX_FRAME_SIZE = 1024 * 1024 + 1024
CHANNEL_MAX = 4999
MECHANISMS = ("ANONYMOUS", "PLAIN", "MSSBCBS", "EXTERNAL")


class Wire:
    """Writer to a transport, immediate or delayed, always in order.

    A delay adds latency and does not limit throughput: any number of writes may be pending.
    """

    def __init__(self, transport: asyncio.Transport, faults: Faults) -> None:
        self._transport = transport
        self._faults = faults
        self._loop = asyncio.get_running_loop()
        self._held: deque[tuple[float, bytes | None]] = deque()
        self._closed = False

    def write(self, data: bytes) -> None:
        """Send bytes."""
        if self._faults.delay or self._held:
            self._hold(data)
        elif not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """Close the transport after everything written so far."""
        self._closed = True
        if self._held:
            self._hold(None)
        else:
            self._transport.close()

    def abort(self) -> None:
        """Close the transport at once and discard pending writes."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Return whether nothing can be sent any more."""
        return self._closed or self._transport.is_closing()

    def _hold(self, data: bytes | None) -> None:
        last = self._held[-1][0] if self._held else 0.0
        due = max(last, self._loop.time() + self._faults.delay)
        self._held.append((due, data))
        if len(self._held) == 1:
            self._loop.call_at(due, self._release)

    def _release(self) -> None:
        # The clock may be slightly behind the timer that called.
        now = max(self._loop.time(), self._held[0][0])
        while self._held and self._held[0][0] <= now:
            _, data = self._held.popleft()
            if data is None:
                self._transport.close()
            elif not self._transport.is_closing():
                self._transport.write(data)
        if self._held:
            self._loop.call_at(self._held[0][0], self._release)


class Connection(asyncio.Protocol):
    """AMQP connection to one client, from the first header to the last frame."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.hubs = server.hubs
        self.faults = server.faults
        self.container_id = ""
        self.remote_max_frame_size = amqp.MIN_MAX_FRAME_SIZE
        self.paused = False
        self._sessions: dict[int, Session] = {}
        self._buffer = bytearray()
        self._expects_header = True
        self._opened = False
        self._loop = asyncio.get_running_loop()
        self._heard = self._loop.time()
        self._timers: list[asyncio.TimerHandle] = []
        self._authorized_until = -math.inf
        self._expiry: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, unless connections are to be refused, or the server has stopped."""
        stream = cast("asyncio.Transport", transport)
        self._wire = Wire(stream, self.faults)
        self.server.connections.add(self)
        if self.faults.refusing or not self.server.is_listening:
            self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Release everything that the client held."""
        for timer in self._timers:
            timer.cancel()
        if self._expiry is not None:
            self._expiry.cancel()
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()
        self.server.on_lost(self)

    def pause_writing(self) -> None:
        """Stop sending events while the client does not read."""
        self.paused = True

    def resume_writing(self) -> None:
        """Resume sending events."""
        self.paused = False
        for session in list(self._sessions.values()):
            session.pump()

    def data_received(self, data: bytes) -> None:
        """Process received bytes; any error in them closes the connection with a condition."""
        self._heard = self._loop.time()
        self._buffer += data
        try:
            self._read()
        except CodecError as error:
            self.close(invalid(str(error)))

    def _read(self) -> None:
        at = 0
        try:
            while not self._wire.is_closing():
                if self._expects_header:
                    if len(self._buffer) - at < 8:
                        return
                    self._on_header(bytes(self._buffer[at : at + 8]))
                    at += 8
                    continue
                frame = amqp.split_frame(self._buffer, at, MAX_FRAME_SIZE)
                if frame is None:
                    return
                at = frame.end
                self._on_frame(frame)
        finally:
            del self._buffer[:at]

    def _on_header(self, header: bytes) -> None:
        self._expects_header = False
        if header == amqp.SASL_HEADER:
            offer = amqp.SaslMechanisms(sasl_server_mechanisms=MECHANISMS)
            self.write(amqp.SASL_HEADER + amqp.encode_frame(offer, kind=amqp.SASL_FRAME))
        elif header == amqp.AMQP_HEADER:
            self.write(amqp.AMQP_HEADER)
        else:
            # As specified for an unknown protocol: send the header of the supported one.
            self.write(amqp.SASL_HEADER)
            self._wire.close()

    def _on_frame(self, frame: amqp.Frame) -> None:
        body = amqp.decode_body(self._buffer, frame)
        match body.performative:
            case None:
                pass
            case amqp.SaslInit():
                self.write(amqp.encode_frame(amqp.SaslOutcome(), kind=amqp.SASL_FRAME))
                self._expects_header = True
            case amqp.Open():
                self._on_open(body.performative)
            case amqp.Begin():
                self._on_begin(frame.channel, body.performative)
            case amqp.Close():
                self.close()
            case performative:
                self._on_session_frame(frame.channel, performative, body.payload)

    def _on_begin(self, channel: int, begin: amqp.Begin) -> None:
        if not self._opened or channel in self._sessions or channel > CHANNEL_MAX:
            raise CodecError(f"no session can begin on channel {channel} now")
        self._sessions[channel] = Session(self, channel, begin)

    def _on_session_frame(self, channel: int, performative: Composite, payload: bytes) -> None:
        session = self._sessions.get(channel)
        if session is None:
            raise CodecError(
                f"{type(performative).__name__} on channel {channel}, without a session"
            )
        session.on_frame(performative, payload)

    def _on_open(self, peer: amqp.Open) -> None:
        if peer.max_frame_size < amqp.MIN_MAX_FRAME_SIZE:
            raise CodecError(
                f"max-frame-size {peer.max_frame_size} is below {amqp.MIN_MAX_FRAME_SIZE}"
            )
        self._opened = True
        self.container_id = peer.container_id
        self.remote_max_frame_size = min(peer.max_frame_size, MAX_FRAME_SIZE)
        self.write(
            amqp.encode_frame(
                amqp.Open(
                    container_id=self.server.container_id,
                    max_frame_size=MAX_FRAME_SIZE,
                    channel_max=CHANNEL_MAX,
                    # Half of the tolerated time, as the specification recommends.
                    idle_time_out=int(self.server.idle_timeout * 500),
                )
            )
        )
        if peer.idle_time_out:
            self._every(peer.idle_time_out / 2000, lambda: self.write(amqp.EMPTY_FRAME))
        self._every(self.server.idle_timeout / 2, self._check_idle)

    def _every(self, seconds: float, function: Callable[[], None]) -> None:
        slot = len(self._timers)

        def beat() -> None:
            self._timers[slot] = self._loop.call_later(seconds, beat)
            function()

        self._timers.append(self._loop.call_later(seconds, beat))

    def _check_idle(self) -> None:
        if self._loop.time() - self._heard > self.server.idle_timeout:
            self.close(idle(self.server.idle_timeout))

    @property
    def is_authorized(self) -> bool:
        """Return whether links may be attached."""
        return self.server.keys is None or time.time() < self._authorized_until

    def authorize(self, token: object) -> None:
        """Accept a token until it expires; links are detached then, unless there is another.

        Raises:
            TokenError: the token is not accepted.
        """
        if self.faults.refusing_tokens:
            raise TokenError(INVALID_SIGNATURE)
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        if self.server.keys is None:
            self._authorized_until = math.inf
            return
        now = time.time()
        self._authorized_until = expiry_of(token, self.server.keys, now)
        self._expiry = self._loop.call_later(self._authorized_until - now, self._token_expired)

    def _token_expired(self) -> None:
        for session in list(self._sessions.values()):
            session.detach_unauthorized()

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._wire.write(data)

    def later(self, function: Callable[[], None]) -> None:
        """Schedule a function, to let other callbacks run first."""
        self._loop.call_soon(function)

    def forget(self, session: Session) -> None:
        """Forget a session that has ended."""
        self._sessions.pop(session.channel, None)

    def close(self, error: amqp.Error | None = None) -> None:
        """Close the connection in good order, with an error if there is one."""
        if self._wire.is_closing():
            return
        if self._opened:
            self.write(amqp.encode_frame(amqp.Close(error=error)))
        self._wire.close()

    def abort(self) -> None:
        """Drop the connection as a broken network does."""
        self._wire.abort()

    def note_refused(self, attach: amqp.Attach, error: amqp.Error) -> None:
        """Record a refused link in the journal."""
        self.server.note_refused(self.container_id, attach, error)
