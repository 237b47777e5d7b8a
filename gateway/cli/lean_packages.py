"""Packages whose own `__init__` runs only when something asks for a name of it.

`import mcp.server.lowlevel` runs `mcp/server/__init__.py` first, which imports the SDK's high-level server, and with it
cryptography and much else that a gateway never uses: together a sixth of its idle memory. Submodules need nothing of
that. So a package that is held back is only a place to find its submodules in, until an attribute is missing, which
runs its `__init__` after all: `from mcp import ClientSession` works as ever. The models of `mcp_types` are built late
(`gateway.cli.lean_models`).

This is for the process of the command line only; a program that uses the gateway as a library imports as it likes.
"""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from threading import RLock
from types import ModuleType
from typing import Any, Final

from gateway.cli.lean_models import PACKAGE, DeferringLoader

LEAN: Final = frozenset({"mcp", "mcp.client", "mcp.server", "mcp.shared", "uvicorn"})
"""The packages that are held back."""


_loading: Final = RLock()


def hold_back() -> None:
    """Hold back the packages of `LEAN`, and models, that are not imported yet, in this process from now on."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_held, has_models = fullname in LEAN, fullname.partition(".")[0] == PACKAGE
        spec = PathFinder.find_spec(fullname, path, target) if is_held or has_models else None
        if spec is not None and is_held and spec.loader is not None:
            spec.loader = _LaterLoader(spec.loader)
        elif spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = DeferringLoader(spec.loader.name, spec.loader.path)
        return spec


class _LaterLoader(Loader):
    def __init__(self, real: Loader) -> None:
        self.real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _HeldBack(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is run yet."""


class _HeldBack(ModuleType):
    def __getattr__(self, name: str) -> Any:
        # Whoever looks around asks every module for some of these; none of them is worth the import.
        spec = self.__spec__
        if (name.startswith("__") and name != "__version__") or spec is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        with _loading:
            if isinstance(spec.loader, _LaterLoader):  # no other thread, nor this one further up, has begun
                later = spec.loader
                spec.loader = self.__loader__ = later.real
                try:
                    spec.loader.exec_module(self)
                except BaseException:
                    spec.loader = self.__loader__ = later  # whoever asks next may try again
                    raise
                self.__class__ = ModuleType  # pyright: ignore[reportAttributeAccessIssue]  (modules allow it)
        if name in self.__dict__:
            return self.__dict__[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
