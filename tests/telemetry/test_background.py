"""Log lines that a thread writes."""

import logging
import os
import sys
import threading

import pytest

from gateway.telemetry.background import BackgroundHandler


@pytest.mark.skipif(sys.platform == "win32", reason="pipes there are never non-blocking")
def test_a_pipe_that_cannot_block_gets_every_line_whole() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    lines = [f"line {number} {'x' * 200}" for number in range(1_000)]  # more than a pipe takes at once
    read: list[bytes] = []

    def read_all() -> None:
        while data := os.read(reading, 4_096):
            read.append(data)

    with open(writing, "w", encoding="utf-8") as stream:
        handler = BackgroundHandler(stream)
        handler.setFormatter(logging.Formatter("%(message)s"))
        for line in lines:
            handler.emit(logging.LogRecord("test", logging.INFO, __file__, 0, line, (), None))
        reader = threading.Thread(target=read_all)
        reader.start()
        handler.close()
    reader.join()
    os.close(reading)
    assert b"".join(read).decode().splitlines() == lines
