"""A host's configuration as text: finding the servers in it, and adding or removing servers.

Every edit is checked before it is returned: parsed again, the new text must contain the requested change and everything
else from the old text.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from gateway.config.documents import from_json, from_toml
from gateway.config.toml_text import table_text
from gateway.config.yaml_documents import from_yaml
from gateway.core.model.json_values import is_dict
from gateway.errors import ConfigError
from gateway.hosts.config_files import json_edits, toml_tables, yaml_edits

Syntax = Literal["json", "toml", "yaml"]

_MEND = "fix it first; nothing was changed"
_BY_HAND = "edit it by hand: the gateway changes no file that it cannot change exactly"


@dataclass(frozen=True)
class Document:
    """The text of a configuration file ("" if missing or empty), and its name for errors."""

    text: str
    syntax: Syntax
    where: str

    @cached_property
    def data(self) -> dict[str, Any]:
        """The text parsed as plain values; not to be modified.

        Raises:
            ConfigError: it is malformed, with line and column.
        """
        if self.syntax == "toml":
            return from_toml(self.text.removeprefix("\ufeff"), self.where, _MEND)
        if self.syntax == "yaml":
            return from_yaml(self.text, self.where, _MEND)
        return from_json(self.text, self.where, _MEND)

    def table(self, path: Sequence[str]) -> dict[str, Any] | None:
        """Return the table at `path`, or None.

        Raises:
            ConfigError: the text is malformed, or there is something other than a table.
        """
        value: Any = self.data
        for place, key in enumerate(path):
            value = value.get(key)
            if value is None:
                return None
            if not is_dict(value):
                raise ConfigError("must be an object of servers", where=f"{self.where}: {'.'.join(path[: place + 1])}")
        return value

    def with_server(self, path: Sequence[str], name: str, entry: Mapping[str, Any]) -> "Document":
        """Return the document with the server `name`, added or replaced.

        Raises:
            ConfigError: the text is malformed, or cannot be changed exactly.
        """
        wanted, table = self._with_own_table(path)
        had = name in table
        table[name] = dict(entry)
        if self.syntax == "toml":
            belongs = toml_tables.begins_with([*path, name])
            made = table_text([*path, name], entry)
            text = toml_tables.replaced(self.text, belongs, made) if had else toml_tables.with_table(self.text, made)
        elif self.syntax == "yaml":
            text = self._edited(lambda: yaml_edits.with_member(self.text, self.where, path, name, entry))
        else:
            text = json_edits.with_member(self.text, path, name, dict(entry))
        return self._checked(text, wanted)

    def with_setting(self, name: str, value: str | int | float | bool) -> "Document":
        """Return the document with a setting of the host itself, of which it has none; the document is YAML.

        Raises:
            ConfigError: the text is malformed, or cannot be changed exactly.
        """
        text = self._edited(lambda: yaml_edits.with_setting(self.text, self.where, name, value))
        return self._checked(text, {**self.data, name: value})

    def without_settings(self, names: Sequence[str]) -> "Document":
        """Return the document without these settings of the host itself; the document is YAML.

        Raises:
            ConfigError: the text is malformed, or cannot be changed exactly.
        """
        text = self._edited(lambda: yaml_edits.without_members(self.text, self.where, (), names))
        return self._checked(text, {name: value for name, value in self.data.items() if name not in names})

    def without_servers(self, path: Sequence[str], names: Sequence[str]) -> "Document":
        """Return the document without these servers.

        Raises:
            ConfigError: the text is malformed, or cannot be changed exactly.
        """
        wanted, table = self._with_own_table(path)
        for name in names:
            table.pop(name, None)
        text = self.text
        if self.syntax == "toml":
            for name in names:
                text = toml_tables.without_tables(text, toml_tables.begins_with([*path, name]))
        elif self.syntax == "yaml":
            text = self._edited(lambda: yaml_edits.without_members(self.text, self.where, path, names))
        else:
            text = json_edits.without_members(text, path, names)
        return self._checked(text, wanted)

    def _with_own_table(self, path: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the data, and the table at `path` within it, as copies that may be modified."""
        data = dict(self.data)
        table = data
        for key in path:
            table[key] = dict(table.get(key) or {})
            table = table[key]
        return data, table

    def _edited(self, edit: Callable[[], str]) -> str:
        try:
            return edit()
        except yaml_edits.NotEditable:
            raise self._not_editable() from None

    def _not_editable(self) -> ConfigError:
        return ConfigError("is written in a way that cannot be edited safely", where=self.where, remedy=_BY_HAND)

    def _checked(self, text: str, wanted: dict[str, Any]) -> "Document":
        document = Document(text, self.syntax, self.where)
        try:
            same = document.data == wanted or pruned(document.data) == pruned(wanted)
        except ConfigError:
            same = False
        if not same:
            raise self._not_editable()
        return document


def pruned(value: Any) -> Any:
    """Remove empty tables within tables: deleting TOML's last subtable removes the table as well."""
    if not is_dict(value):
        return value
    table = {key: pruned(item) for key, item in value.items()}
    return {key: item for key, item in table.items() if item != {}}


def syntax_of(name: str) -> Syntax:
    """Return the syntax of a file, by its name."""
    ending = name.lower().rpartition(".")[2]
    return "toml" if ending == "toml" else "yaml" if ending in ("yaml", "yml") else "json"
