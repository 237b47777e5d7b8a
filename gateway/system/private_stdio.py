"""The standard streams of a process that speaks a protocol over them. Standard library only."""

import os
from typing import BinaryIO


def private_stdio() -> tuple[BinaryIO, BinaryIO]:
    """Return the protocol's streams, moved away from 0 and 1, where libraries or other processes would disturb it."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    return incoming, outgoing
