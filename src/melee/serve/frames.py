"""What workers and the learner say to each other: frames over a socket of this machine.

A frame is a length and what follows. A worker asks with a number of its own choice, a method, a
path and a body; the learner answers with the same number, a status, a type and a content, in any
order. Number 0 belongs to no request: with it the learner says that it is ready, and a worker how
many requests it has answered. Frames of one turn of an event loop are written together.
"""

import asyncio
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator

NOTE = 0
"""The number of a frame that asks for nothing."""
_LENGTH = struct.Struct("!I")
_QUESTION = struct.Struct("!IIH")  # length, number, length of the target
_REPLY = struct.Struct("!IIHB")  # length, number, status, length of the type


def question(number: int, target: bytes, body: bytes) -> bytes:
    """A frame that asks; the target is a method and a path.

    >>> read_question(question(7, b"GET /ready", b"")[4:])
    (7, b'GET /ready', b'')
    """
    size = 6 + len(target) + len(body)
    return _QUESTION.pack(size, number, len(target)) + target + body


def read_question(frame: bytes) -> tuple[int, bytes, bytes]:
    """The number, the target and the body."""
    number, size = struct.unpack_from("!IH", frame)
    return number, frame[6 : 6 + size], frame[6 + size :]


def reply(number: int, status: int, kind: bytes, content: bytes) -> bytes:
    """A frame that answers.

    >>> read_reply(reply(7, 200, b"text/plain", b"yes")[4:])
    (7, 200, b'text/plain', b'yes')
    """
    size = 7 + len(kind) + len(content)
    return _REPLY.pack(size, number, status, len(kind)) + kind + content


def read_reply(frame: bytes) -> tuple[int, int, bytes, bytes]:
    """The number, the status, the type and the content."""
    number, status, size = struct.unpack_from("!IHB", frame)
    return number, status, frame[7 : 7 + size], frame[7 + size :]


class Framed(asyncio.Protocol, ABC):
    """A connection of which frames are read, and to which they are written."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._rest = b""
        self._out: list[bytes] = []
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Read what is whole, and keep the rest."""
        for frame in self._split(data):
            self.frame_received(frame)

    @abstractmethod
    def frame_received(self, frame: bytes) -> None:
        """Do what a frame asks for."""

    def write(self, frame: bytes) -> None:
        """Send a frame, with all others of this turn of the loop."""
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(frame)

    def _flush(self) -> None:
        out, self._out = self._out, []
        if not self.transport.is_closing():
            self.transport.write(b"".join(out))

    def _split(self, data: bytes) -> Iterator[bytes]:
        data = self._rest + data if self._rest else data
        start = 0
        while len(data) - start >= 4:
            (size,) = _LENGTH.unpack_from(data, start)
            end = start + 4 + size
            if end > len(data):
                break
            yield data[start + 4 : end]
            start = end
        self._rest = data[start:]
