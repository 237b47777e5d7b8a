"""Everything that the paths of hosts depend on, as plain values: a test can simulate another platform."""

import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath


@dataclass(frozen=True)
class Machine:
    """A user's environment on a machine. `platform` is spelled as in `sys.platform`: "linux", "darwin", "win32"."""

    platform: str
    home: str
    cwd: str
    environ: Mapping[str, str]
    gateway_ports: Collection[int] = ()
    """The TCP ports on which gateways of this user serve hosts now."""

    @classmethod
    def here(cls, gateway_ports: Collection[int] = ()) -> "Machine":
        """Return the machine that this process runs on."""
        return cls(sys.platform, str(Path.home()), str(Path.cwd()), os.environ, gateway_ports)

    @property
    def separator(self) -> str:
        """The separator between the folders of a path."""
        return "\\" if self.platform == "win32" else "/"

    def path(self, *parts: str) -> PurePath:
        """Return a path in the platform's own spelling."""
        return PureWindowsPath(*parts) if self.platform == "win32" else PurePosixPath(*parts)

    def in_home(self, *parts: str) -> PurePath:
        """Return a path below the user's home folder."""
        return self.path(self.home, *parts)

    def in_project(self, *parts: str) -> PurePath:
        """Return a path below the working folder."""
        return self.path(self.cwd, *parts)

    def in_variable(self, variable: str, *parts: str) -> PurePath | None:
        """Return a path below the folder that an environment variable names, if it is set."""
        folder = self.environ.get(variable)
        return self.path(folder, *parts) if folder else None

    def in_xdg_config(self, *parts: str) -> PurePath:
        """Return a path below `$XDG_CONFIG_HOME`, which is `~/.config` unless set."""
        return self.in_variable("XDG_CONFIG_HOME", *parts) or self.in_home(".config", *parts)

    def in_roaming(self, *parts: str) -> PurePath:
        """Return a path below Windows' `%APPDATA%`."""
        return self.in_variable("APPDATA", *parts) or self.in_home("AppData", "Roaming", *parts)

    def in_local(self, *parts: str) -> PurePath:
        """Return a path below Windows' `%LOCALAPPDATA%`."""
        return self.in_variable("LOCALAPPDATA", *parts) or self.in_home("AppData", "Local", *parts)

    def in_application_data(self, *parts: str) -> PurePath:
        """Return a path where desktop programs keep their settings on this platform."""
        if self.platform == "win32":
            return self.in_roaming(*parts)
        if self.platform == "darwin":
            return self.in_home("Library", "Application Support", *parts)
        return self.in_xdg_config(*parts)
