"""The gateway's own configuration file, as it is edited: read, changed as a text, and written atomically."""

import os
from dataclasses import dataclass
from pathlib import Path

from gateway.config.builtin_profiles import load_profiles
from gateway.config.find_config import find_file
from gateway.config.load_settings import load_settings
from gateway.errors import ConfigError, ProfileError
from gateway.hosts.config_files.files import decoded_text, read_bytes, replace_file
from gateway.hosts.config_files.starter_config import HEAD
from gateway.hosts.config_files.upstream_edits import ConfigurationText


@dataclass(frozen=True)
class ConfigurationFile:
    """A configuration file, existing or not, with its content at the time of reading."""

    path: Path
    content: bytes | None

    @classmethod
    def read(cls, path: Path) -> "ConfigurationFile":
        """Read the file. Raises ConfigError if it cannot be read."""
        return cls(path, read_bytes(path))

    @classmethod
    def existing(cls, asked: Path | None) -> "ConfigurationFile":
        """Read the configuration in force.

        Raises:
            ConfigError: there is none.
        """
        found = find_file(asked, environ=os.environ)
        file = cls.read(found.absolute()) if found is not None else None
        if file is None or not file.exists:
            where = str(found) if found is not None else None
            raise ConfigError("there is no configuration yet", where=where, remedy="`mcp-gateway add` begins one")
        return file

    @property
    def exists(self) -> bool:
        """Whether there was a file."""
        return self.content is not None

    @property
    def text(self) -> ConfigurationText:
        """Its text, or the beginning of a first configuration if the file does not exist yet.

        Raises:
            ConfigError: the file is not UTF-8.
        """
        begins = "" if self.exists or self.path.suffix.lower() == ".json" else HEAD
        return ConfigurationText(begins or decoded_text(self.content, self.path), self.path)

    @property
    def as_option(self) -> str:
        """` --config FILE` if the file is not the one found without it, or else empty."""
        found = find_file(None, environ=os.environ)
        return "" if found is not None and found.absolute() == self.path else f" --config {self.path}"

    def write(self, text: ConfigurationText) -> None:
        """Write the text to the file. Raises ConfigError if it cannot be written, or was changed meanwhile."""
        replace_file(self.path, text.text.encode("utf-8"), expected=self.content)

    def obstacles(self) -> list[str]:
        """Return why a gateway cannot use the file in its current state, one line each; none if it can."""
        try:
            load_profiles(load_settings(self.path).settings)
        except (ConfigError, ProfileError) as error:
            return str(error).splitlines()
        return []
