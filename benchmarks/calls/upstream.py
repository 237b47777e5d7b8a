"""The raw upstream: a server of bytes without the SDK, so that what is measured is nearly all the gateway.

python -m benchmarks.calls.upstream http PORT        /ERA/TOOLS is a server of that era with so many tools
python -m benchmarks.calls.upstream stdio ERA TOOLS
"""

import asyncio
import socket
import sys
from functools import cache
from typing import cast

from benchmarks.calls.wire import Answers, Era


@cache
def answers(era: str, tools: str) -> Answers:
    """One server for each address."""
    return Answers(Era(era), int(tools))


class HttpServer(asyncio.Protocol):
    """One connection: requests with a content-length, one after another."""

    def __init__(self) -> None:
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Answer at once, not when the acknowledgement of the answer before has come."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are of another class
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].decode("latin-1").lower()
            _, found, rest = head.partition("\r\ncontent-length:")
            body_end = end + 4 + (int(rest.split("\r\n", 1)[0]) if found else 0)
            if len(self._buffer) < body_end:
                return
            body, self._buffer = self._buffer[end + 4 : body_end], self._buffer[body_end:]
            self.respond(head, body)

    def respond(self, head: str, body: bytes) -> None:
        """Answer one request."""
        method, path, _ = head.split(" ", 2)
        if method == "post":
            _, era, tools = path.split("/")
            self.write_answer(answers(era, tools).answer(body))
        else:
            self._transport.write(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n")

    def write_answer(self, answer: bytes | None) -> None:
        """Send it; None is for a notification."""
        if answer is None:
            self._transport.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
            return
        start = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(answer)}\r\n\r\n"
        self._transport.writelines([start.encode(), answer])


async def serve_http(port: int) -> None:
    """Until killed."""
    server = await asyncio.get_running_loop().create_server(HttpServer, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


def serve_stdio(server: Answers) -> None:
    """Until the input ends."""
    for line in sys.stdin.buffer:
        if (answer := server.answer(line)) is not None:
            sys.stdout.buffer.write(answer + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    if sys.argv[1] == "http":
        asyncio.run(serve_http(int(sys.argv[2])))
    else:
        serve_stdio(answers(*sys.argv[2:4]))
