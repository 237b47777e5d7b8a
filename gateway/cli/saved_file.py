"""A file that a command writes because it was asked to, or stdout in its place."""

import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO

from gateway.cli.exit_codes import refuse
from gateway.errors import ConfigError
from gateway.system.files import replacing


class SavedFile:
    """A file that is there when it is whole, and not before; or stdout (`is_stdout`), for the `path` `-`."""

    def __init__(self, target: Path, force: bool) -> None:
        self.path = target
        self.is_stdout = str(target) == "-"
        if not self.is_stdout and target.exists() and not force:
            refuse(f"{target} exists: give another --to, or --force")
        self._stack = ExitStack()
        self._file: IO[bytes] = sys.stdout.buffer

    def __enter__(self) -> "SavedFile":
        if not self.is_stdout:
            try:
                self._file = self._stack.enter_context(replacing(self.path))
            except OSError as error:
                raise ConfigError(f"cannot write {self.path}: {error.strerror or error}") from None
        return self

    def write(self, piece: bytes) -> None:
        self._file.write(piece)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.flush()
        self._stack.__exit__(kind, error, trace)
