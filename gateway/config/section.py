"""The base classes of the tables of mcp-gateway.toml."""

from collections.abc import Iterable
from typing import Self

from pydantic import BaseModel, ConfigDict, PrivateAttr


class Section(BaseModel):
    """A table of the file: frozen, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SecretSection(Section):
    """A table that knows which values in it are secrets, because they were read from outside of the file."""

    _read_secrets: frozenset[str] = PrivateAttr(default=frozenset[str]())

    @property
    def read_secrets(self) -> frozenset[str]:
        """The secrets in it that came from files, the keyring or commands."""
        return self._read_secrets

    def with_read_secrets(self, secrets: Iterable[str]) -> Self:
        """Return the same table, with these for its `read_secrets`."""
        copy = self.model_copy()
        copy._read_secrets = frozenset(secrets)
        return copy
