"""Lines at a terminal break at blanks."""

import os
import struct
from collections.abc import Iterator
from io import StringIO
from typing import TextIO

import pytest

from gateway.telemetry.wrap_lines import wrapped

PATH = "/a/path/of/more/than/forty/characters/that/is/copied.toml"
LINE = f"error: nothing can be added to the upstreams of {PATH} as they are written there"


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    """A terminal of 40 columns."""
    fcntl, pty, termios = (pytest.importorskip(name) for name in ("fcntl", "pty", "termios"))  # POSIX's
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    with os.fdopen(side, "w") as stream:
        yield stream
    os.close(main)


def test_lines_are_wrapped_at_blanks_and_words_stay_whole(terminal: TextIO) -> None:
    lines = wrapped(f"{LINE}\nshort", terminal).split("\n")
    assert " ".join(line.strip() for line in lines[:-1]) == LINE
    assert lines[-1] == "short"
    assert all(len(line) <= 40 or line.strip() == PATH for line in lines)
    assert all(line.startswith("  ") for line in lines[1:-1])


def test_what_is_not_read_at_a_terminal_is_left_as_it_is() -> None:
    assert wrapped(LINE, StringIO()) == LINE
