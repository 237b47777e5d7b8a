"""Adding, changing and removing upstreams in a configuration of the gateway, keeping every other character.

A configuration is TOML (`[upstreams.NAME]`) or another program's JSON (`mcpServers`, `servers`). Each edit is checked
before it is returned: parsed again, the new text must contain the requested change and everything else from the old
text.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from gateway.config.foreign import translate_document
from gateway.config.setting_types import OWN_NAME
from gateway.config.toml_text import table_header
from gateway.config.upstream_settings import UPSTREAM_NAME, UPSTREAM_NAME_LENGTH
from gateway.config.validation import NAME_RULE
from gateway.core.model.json_values import as_object, is_object
from gateway.core.near_names import which_name
from gateway.errors import ConfigError
from gateway.hosts.config_files import json_edits, toml_edits, toml_upstreams
from gateway.hosts.config_files.documents import Document, pruned


class _Entries(NamedTuple):
    """Named tables below one table, that a command adds and removes."""

    path: tuple[str, ...]
    noun: str
    to_remove: str | None
    to_add: str


WAY_IN = (
    *("command", "args", "env", "cwd", "url", "openapi", "base_url", "operations", "transport", "headers"),
    "registry",
)
"""Keys that decide which server an upstream is; the others say how it is treated."""

_JSON_WAY_IN = frozenset(
    ["command", "args", "env", "cwd", "url", "serverUrl", "httpUrl", "type", "transport", "headers"]
)
_TABLE = "upstreams"
_TOKENS = _Entries(
    ("access", "tokens"), "token", "`mcp-gateway token rm` removes it", "`mcp-gateway token add` makes one"
)
_PEOPLE = _Entries(
    ("access", "people"), "person", "`mcp-gateway person rm` removes them", "`mcp-gateway person add` makes one"
)
_TOOLSETS = _Entries(("toolsets",), "toolset", None, "add it")
BY_HAND = "edit it by hand: the gateway changes no file that it cannot change exactly"


@dataclass(frozen=True)
class ConfigurationText:
    """The text of a configuration ("" for a new one), and its file, for errors."""

    text: str
    file: Path

    @property
    def is_json(self) -> bool:
        """Whether it has the format of other programs."""
        return self.file.suffix.lower() == ".json"

    def upstreams(self) -> dict[str, Mapping[str, Any]]:
        """Return the tables of its upstreams by name, as written; JSON servers under the names that they have here.

        Raises:
            ConfigError: the text is malformed.
        """
        table = self._document.table(self._table) or {}
        names: Mapping[str, str] = self._json_names if self.is_json else {}
        written = {names.get(name, name): value for name, value in table.items()}
        return {name: one for name, one in written.items() if is_object(one)}

    def with_upstream(self, name: str, upstream: Mapping[str, Any]) -> "ConfigurationText":
        """Return the configuration with another upstream.

        Raises:
            ConfigError: the name is taken or invalid, or the text cannot be changed exactly.
        """
        if len(name) > UPSTREAM_NAME_LENGTH or not re.fullmatch(UPSTREAM_NAME, name):
            raise ConfigError(f"{name!r} cannot be the name of an upstream", remedy=NAME_RULE)
        if name == OWN_NAME:
            raise ConfigError(f"the name {name!r} is the gateway's own", remedy="give the upstream another")
        if name in self.upstreams():
            remedy = "choose another name, or let --replace change that one"
            raise ConfigError(f"there is an upstream {name!r} already", where=str(self.file), remedy=remedy)
        if self.is_json:
            return self._json_with(name, _as_json_server(upstream, self._table))
        path = (_TABLE, name)
        return self._toml(lambda text: toml_edits.with_new(text, path, upstream), {name: dict(upstream)})

    def with_way_in(self, name: str, upstream: Mapping[str, Any]) -> "ConfigurationText":
        """Return the configuration with another server behind `name`; the rest of its table (tools, limits) stays.

        Raises:
            ConfigError: there is no such upstream, or the text cannot be changed exactly.
        """
        before = self._existing(name)
        upstream = {key: value for key, value in upstream.items() if key in WAY_IN or key not in before}
        if self.is_json:
            kept = {key: value for key, value in before.items() if key not in _JSON_WAY_IN}
            return self._json_with(self._json_key(name), {**_as_json_server(upstream, self._table), **kept})
        kept = {key: value for key, value in before.items() if key not in WAY_IN}
        return self._toml(
            lambda text: toml_edits.changed(text, (_TABLE, name), upstream, without=WAY_IN),
            {name: {**kept, **upstream}},
        )

    def with_changes(self, name: str, upstream: Mapping[str, Any]) -> "ConfigurationText":
        """Return the configuration with this table for an upstream; only what differs is written.

        Raises:
            ConfigError: there is no such upstream, or the text cannot be changed exactly.
        """
        before, nested = self._existing(name), ("env", "headers")

        def edit(text: str) -> str:
            for key in nested:
                now, then = as_object(upstream.get(key)), as_object(before.get(key))
                changed = {each: value for each, value in now.items() if then.get(each) != value}
                gone = [each for each in then if each not in now]
                if changed or gone:
                    text = toml_upstreams.with_subtable(text, name, key, changed, without=gone)
            values = {key: one for key, one in upstream.items() if key not in nested and before.get(key) != one}
            gone = [key for key in before if key not in upstream]
            return toml_edits.changed(text, (_TABLE, name), values, without=gone) if values or gone else text

        return self._toml(edit, {name: dict(upstream)})

    def without_upstream(self, name: str) -> "ConfigurationText":
        """Return the configuration without the upstream, and without the comment right above it.

        Raises:
            ConfigError: there is no such upstream, or the text cannot be changed exactly.
        """
        self._existing(name)
        if self.is_json:
            document = self._document.without_servers(self._table, [self._json_key(name)])
            return ConfigurationText(document.text, self.file)
        return self._toml(lambda text: toml_edits.without_table(text, (_TABLE, name)), {name: None})

    def with_enabled(self, name: str, *, enabled: bool) -> "ConfigurationText":
        """Return the configuration with the upstream switched on or off; the same object if it is so already.

        Raises:
            ConfigError: there is no such upstream, or the text cannot be changed exactly.
        """
        before = self._existing(name)
        if self.is_json:
            if (before.get("disabled") is not True) is enabled:
                return self
            rest = {key: value for key, value in before.items() if key != "disabled"}
            path = (*self._table, self._json_key(name))
            if enabled:
                text = json_edits.without_members(self.text, path, ["disabled"])
            else:
                text = json_edits.with_member(self.text, path, "disabled", True)
            return self._checked_json(text, self._json_key(name), rest if enabled else {**before, "disabled": True})
        if (before.get("enabled") is not False) is enabled:
            return self
        edits = {"enabled": enabled}
        return self._toml(lambda text: toml_edits.changed(text, (_TABLE, name), edits), {name: {**before, **edits}})

    def with_tools(self, name: str, include: Sequence[str], exclude: Sequence[str]) -> "ConfigurationText":
        """Return the configuration with another choice of the upstream's tools; the same object if it is that already.

        Only the lists that differ are written.

        Raises:
            ConfigError: there is no such upstream, or the text cannot be changed exactly.
        """
        before = self._existing(name)
        if self.is_json:
            remedy = "put the server into a mcp-gateway.toml: `mcp-gateway import`"
            raise ConfigError(
                "has another program's format, which chooses no tools", where=str(self.file), remedy=remedy
            )
        tools = as_object(before.get("tools"))
        now = {"include": list(tools.get("include", ["*"])), "exclude": list(tools.get("exclude", []))}
        wanted = {"include": list(include), "exclude": list(exclude)}
        edits = {key: value for key, value in wanted.items() if value != now[key]}
        if not edits:
            return self
        after = {**before, "tools": {**tools, **edits}}
        return self._toml(lambda text: toml_upstreams.with_subtable(text, name, "tools", edits), {name: after})

    def tokens(self) -> dict[str, Mapping[str, Any]]:
        """Return the tables of its tokens by name, as written. Raises ConfigError if the text is malformed."""
        return self._entries(_TOKENS)

    def with_token(self, name: str, token: Mapping[str, Any]) -> "ConfigurationText":
        """Return the configuration with another token.

        Raises:
            ConfigError: there is one of this name, or the text cannot be changed exactly.
        """
        return self._with_entry(_TOKENS, name, token)

    def without_token(self, name: str) -> "ConfigurationText":
        """Return the configuration without a token, and without the comment right above it.

        Raises:
            ConfigError: there is no such token, or the text cannot be changed exactly.
        """
        return self._without_entry(_TOKENS, name)

    def people(self) -> dict[str, Mapping[str, Any]]:
        """Return the tables of its people by name, as written. Raises ConfigError if the text is malformed."""
        return self._entries(_PEOPLE)

    def with_person(self, name: str, person: Mapping[str, Any]) -> "ConfigurationText":
        """Return the configuration with another person. Raises ConfigError as `with_token` does."""
        return self._with_entry(_PEOPLE, name, person)

    def without_person(self, name: str) -> "ConfigurationText":
        """Return the configuration without a person. Raises ConfigError as `without_token` does."""
        return self._without_entry(_PEOPLE, name)

    def toolsets(self) -> dict[str, Mapping[str, Any]]:
        """Return the tables of its toolsets by name, as written. Raises ConfigError if the text is malformed."""
        return self._entries(_TOOLSETS)

    def with_toolset(self, name: str, patterns: Mapping[str, Sequence[str]]) -> "ConfigurationText":
        """Return the configuration with these lists of patterns for a toolset, new or not; empty ones are left out.

        It is the same object if they are so already.

        Raises:
            ConfigError: the text cannot be changed exactly.
        """
        wanted = {key: list(value) for key, value in patterns.items() if value}
        toolsets = self.toolsets()
        if name not in toolsets:
            return self._with_entry(_TOOLSETS, name, wanted)
        before = toolsets[name]
        edits = {key: value for key, value in wanted.items() if before.get(key) != value}
        gone = [key for key in before if key not in wanted]
        if not edits and not gone:
            return self
        path = [*_TOOLSETS.path, name]
        return self._changed_to(
            _TOOLSETS, lambda text: toml_edits.changed(text, path, edits, without=gone), {**toolsets, name: wanted}
        )

    def without_toolset(self, name: str) -> "ConfigurationText":
        """Return the configuration without a toolset, and without the comment right above it.

        Raises:
            ConfigError: there is none, somebody is given it, or the text cannot be changed exactly.
        """
        if (used := next(_places_of(self._document.data.get("access"), "toolset", name, "access"), None)) is not None:
            remedy = "name another one there first: without a toolset they would have everything"
            raise ConfigError(f"names the toolset {name!r}", where=f"{self.file}: {used}", remedy=remedy)
        return self._without_entry(_TOOLSETS, name)

    def _entries(self, kind: _Entries) -> dict[str, Mapping[str, Any]]:
        written = self._document.table(kind.path) or {}
        return {name: one for name, one in written.items() if is_object(one)}

    def _with_entry(self, kind: _Entries, name: str, entry: Mapping[str, Any]) -> "ConfigurationText":
        if self.is_json:
            remedy = f"a {kind.noun} goes into a mcp-gateway.toml"
            raise ConfigError("has another program's format", where=str(self.file), remedy=remedy)
        entries = self._entries(kind)
        if name in entries:
            edit = f"edit {table_header([*kind.path, name])} there, which a running gateway takes over at once"
            remedy = "; ".join(filter(None, (edit, kind.to_remove, "or choose another name")))
            raise ConfigError(f"there is a {kind.noun} {name!r} already", where=str(self.file), remedy=remedy)
        path = [*kind.path, name]
        return self._changed_to(kind, lambda text: toml_edits.with_new(text, path, entry), {**entries, name: entry})

    def _without_entry(self, kind: _Entries, name: str) -> "ConfigurationText":
        entries = self._entries(kind)
        if name not in entries:
            remedy = which_name(name, entries, none=kind.to_add)
            raise ConfigError(f"there is no {kind.noun} {name!r}", where=str(self.file), remedy=remedy)
        left = {each: table for each, table in entries.items() if each != name}
        return self._changed_to(kind, lambda text: toml_edits.without_table(text, [*kind.path, name]), left)

    def _existing(self, name: str) -> dict[str, Any]:
        upstreams = self.upstreams()
        if name in upstreams:
            return dict(upstreams[name])
        remedy = which_name(name, upstreams, none="it has none: `mcp-gateway add` adds one")
        raise ConfigError(f"there is no upstream {name!r}", where=str(self.file), remedy=remedy)

    @property
    def _document(self) -> Document:
        return Document(self.text, "json" if self.is_json else "toml", str(self.file))

    @property
    def _table(self) -> tuple[str, ...]:
        """The path of the table of upstreams."""
        if not self.is_json:
            return (_TABLE,)
        translation = translate_document(self._document.data)
        return translation.table or ("mcpServers",)

    @property
    def _json_names(self) -> Mapping[str, str]:
        """The names here by the keys in the file."""
        return {key: name for name, key in translate_document(self._document.data).names.items()}

    def _json_key(self, name: str) -> str:
        return translate_document(self._document.data).names.get(name, name)

    def _json_with(self, key: str, server: Mapping[str, Any]) -> "ConfigurationText":
        return ConfigurationText(self._document.with_server(self._table, key, server).text, self.file)

    def _checked_json(self, text: str, key: str, server: Mapping[str, Any]) -> "ConfigurationText":
        changed = ConfigurationText(text, self.file)
        wanted = {**(self._document.table(self._table) or {}), key: dict(server)}
        if changed._document.table(self._table) != wanted:
            raise ConfigError("is written in a way that cannot be edited safely", where=str(self.file), remedy=BY_HAND)
        return changed

    def _toml(self, edit: Callable[[str], str], changes: Mapping[str, Any]) -> "ConfigurationText":
        """Return the edited text, if its only difference is `changes` to its upstreams (None: removed)."""
        upstreams = {**(self._document.table(self._table) or {}), **changes}
        left = {name: table for name, table in upstreams.items() if table is not None}
        return self._checked(edit, {**self._document.data, _TABLE: left})

    def _changed_to(
        self, kind: _Entries, edit: Callable[[str], str], entries: Mapping[str, Any]
    ) -> "ConfigurationText":
        """Return the edited text, if its only difference is in these entries."""
        return self._checked(edit, _with_value(self._document.data, kind.path, entries))

    def _checked(self, edit: Callable[[str], str], wanted: Mapping[str, Any]) -> "ConfigurationText":
        try:
            changed = ConfigurationText(as_lines(self.text, edit), self.file)
            if pruned(changed._document.data) == pruned(wanted):
                return changed
        except (toml_edits.NotEditable, ConfigError):
            pass
        raise ConfigError("is written in a way that cannot be edited safely", where=str(self.file), remedy=BY_HAND)


def _with_value(data: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """Return the document with another value at a path of tables."""
    first, *rest = path
    return {**data, first: _with_value(as_object(data.get(first)), rest, value) if rest else value}


def _places_of(table: Any, key: str, value: str, where: str) -> Iterator[str]:
    """Yield the dotted paths of this key with this value, in a table and those below it."""
    for name, one in as_object(table).items():
        if name == key and one == value:
            yield f"{where}.{name}"
        yield from _places_of(one, key, value, f"{where}.{name}")


def as_lines(text: str, edit: Callable[[str], str]) -> str:
    """Edit the text with plain line feeds, and restore its own line ends and byte order mark."""
    mark, plain = text[: text.startswith("\ufeff")], text.removeprefix("\ufeff")
    if "\r\n" not in plain or "\n" in plain.replace("\r\n", ""):
        return mark + edit(plain)
    return mark + edit(plain.replace("\r\n", "\n")).replace("\n", "\r\n")


def _as_json_server(upstream: Mapping[str, Any], table: Sequence[str]) -> dict[str, Any]:
    """Convert the upstream to the format of other programs; VS Code (`servers`) requires a type.

    Raises:
        ConfigError: it is an HTTP API, which that format does not have.
    """
    if "openapi" in upstream:
        raise ConfigError("an HTTP API cannot be written in JSON", remedy="use a mcp-gateway.toml: --config FILE")
    server = {key: upstream[key] for key in ("command", "args", "env", "cwd", "url", "headers") if key in upstream}
    if "url" in upstream and upstream.get("transport") in ("http", "sse"):
        server = {"type": upstream["transport"], **server}
    elif table[-1] == "servers":
        server = {"type": "http" if "url" in upstream else "stdio", **server}
    return server
