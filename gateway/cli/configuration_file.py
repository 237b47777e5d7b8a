"""The configuration file that a command edits: read it, write it atomically, and say which gateway applies it."""

import os
from dataclasses import dataclass
from pathlib import Path

from gateway.cli.exit_codes import DONE, UNUSABLE, complain
from gateway.cli.terminal import remark, say
from gateway.config.builtin_profiles import load_profiles
from gateway.config.find_config import find_file
from gateway.config.load_settings import load_settings
from gateway.errors import ConfigError, ProfileError
from gateway.hosts.config_files.files import decoded_text, read_bytes, replace_file
from gateway.hosts.config_files.starter_config import HEAD
from gateway.hosts.config_files.upstream_edits import ConfigurationText
from gateway.serving.control.records import running


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

    def say_if_taken_over(self) -> bool:
        """Tell the user whether a running gateway with this file applies the change; return whether it is usable.

        A gateway watches its file. One that cannot be used as it is, it does not take over.
        """
        usable = self.warn_if_unusable()
        self._say_what_running_ones_do(usable=usable)
        return usable

    def _say_what_running_ones_do(self, *, usable: bool) -> None:
        if pids := self._running():
            one = len(pids) == 1
            who = f"gateway (process {pids[0]})" if one else f"gateways ({', '.join(pids)})"
            if usable:
                say(f"the running {who} {'takes' if one else 'take'} it over now: no restart is needed")
            else:
                remark(f"the running {who} {'goes' if one else 'go'} on with what was read before")

    def _running(self) -> list[str]:
        """Return the process ids of the gateways that run with this file."""
        here = os.path.realpath(self.path)
        return [str(one.pid) for one in running() if one.config is not None and os.path.realpath(one.config) == here]

    def warn_if_unusable(self) -> bool:
        """Warn about each error that makes the file in its current state unusable; return whether it is usable."""
        try:
            load_profiles(load_settings(self.path).settings)
        except (ConfigError, ProfileError) as error:
            for line in str(error).splitlines():
                remark(f"warning: the configuration cannot be used yet: {line}")
            return False
        return True

    def say_who_refuses(self, removed: str) -> int:
        """Tell the user, after a removal, if a running gateway takes it over; return the exit code.

        `removed` is refused even if the file cannot be used as it is.
        """
        if not self.warn_if_unusable():
            remedy = "mend the configuration; if it cannot even be read, end the gateway: `mcp-gateway stop`"
            complain(f"a running gateway refuses {removed}, but takes over nothing else", remedy=remedy)
            return UNUSABLE
        self._say_what_running_ones_do(usable=True)
        return DONE


def warn_of_access(path: Path, table: str) -> None:
    """Warn of patterns of a table of `[access]`, such as `tokens.alice`, that match no upstream or no known tool."""
    from gateway.cli.diagnosis.globs import check_table
    from gateway.cli.named_callers import remembered_names

    settings = load_settings(path).settings
    for finding in check_table(table, settings, remembered_names(settings)):
        remark(f"warning: {finding.text} ({finding.remedy})")
