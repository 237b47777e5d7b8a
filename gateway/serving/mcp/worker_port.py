"""What the HTTP side needs to know of a gateway that is one of several workers (`gateway.serving.workers`)."""

from typing import Protocol


class WorkerPort(Protocol):
    """This worker: its number, from 1, and whether all of them have once been ready."""

    @property
    def number(self) -> int: ...
    @property
    def all_ready(self) -> bool: ...
