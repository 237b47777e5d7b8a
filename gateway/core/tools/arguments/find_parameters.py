"""Finding the parameters of a tool that take content, and telling the host that it may pass handles."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, cast

from gateway.core.model.json_values import as_list, as_object, is_list, is_object
from gateway.core.model.kinds import Kind
from gateway.core.model.wire import WireObject
from gateway.core.tools.arguments.content_declarations import (
    branches_of,
    declared_parameter,
    is_plain_text,
    openai_file,
    paired,
    schema_types,
)
from gateway.core.tools.arguments.parameters import Form, Parameter, Path, PossibleForms
from gateway.core.wording import takes_content

MOST_NODES = 2_000
"""Maximum number of places in one schema that are examined, including references; the rest is left as it is."""

DEEPEST = 32
"""Maximum depth that is examined."""

_NARROW = frozenset(
    {"contentEncoding", "contentMediaType", "contentSchema", "format", "pattern", "minLength", "maxLength"}
)
"""Keywords that would reject a handle in place of bytes."""
_OF_OBJECTS = frozenset(
    {"properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"}
)
_LIST = re.compile(r"((?:\[\])+)$")


class SchemaPlace(Protocol):
    """The configuration of a parameter; None for everything left to the schema."""

    @property
    def kind(self) -> Kind | Literal["any"] | None: ...
    @property
    def form(self) -> Form | None: ...


@dataclass(frozen=True)
class FoundParameter:
    """The parameters of a tool that take content, and its schema for hosts, which is unchanged if there are none.

    `missing` are configured paths that the schema does not have.
    """

    schema: Any
    parameters: tuple[Parameter, ...] = ()
    missing: tuple[str, ...] = ()


def parameter_path(written: str) -> Path:
    """Parse a path such as `items[].photo`. A dot in a name cannot be written."""
    path: list[str | None] = []
    for step in written.split("."):
        lists = _LIST.search(step)
        path.append(step[: lists.start()] if lists else step)
        path += [None] * (len(lists[1]) // 2 if lists else 0)
    return tuple(path)


def find_parameters(tool: WireObject, settings: Mapping[str, SchemaPlace], giving: PossibleForms) -> FoundParameter:
    """Find the parameters of a tool that take content, according to its schema and the configuration.

    `settings` are by path. Local references are followed; those that lead to a parameter are written out.
    """
    schema = tool.get("inputSchema")
    if not giving.handles or not is_object(schema):
        return FoundParameter(schema)
    finder = _Finder(schema, settings, giving, _file_params(tool))
    edited = finder.node(schema, (), frozenset())
    missing = tuple(written for path, written in finder.written.items() if path not in finder.seen)
    return FoundParameter(edited if finder.found else schema, tuple(finder.found.values()), missing)


class _Finder:
    def __init__(
        self, root: WireObject, settings: Mapping[str, SchemaPlace], giving: PossibleForms, file_params: frozenset[str]
    ) -> None:
        self.root = root
        self.settings = {parameter_path(written): setting for written, setting in settings.items()}
        self.written = {parameter_path(written): written for written in settings}
        self.giving = giving
        self.file_params = file_params
        self.found: dict[Path, Parameter] = {}
        self.seen: set[Path] = set()
        self.nodes = self.hits = self.depth = 0

    def place(self, schema: Any, path: Path, refs: frozenset[str], known: Parameter | None = None) -> Any:
        """Edit the schema of a member or item, whose description says so if it takes content. `known`: it does."""
        edited = self.node(schema, path, refs, known)
        parameter = self.found.get(path)
        if parameter is None or not is_object(edited):
            return edited
        urls = self.giving.fetched or parameter.takes_urls or parameter.form == "url"
        words = takes_content(parameter.kind, parameter.accepts, urls=urls)
        before = edited.get("description")
        return {**edited, "description": f"{before.rstrip()} {words}" if isinstance(before, str) and before else words}

    def node(self, schema: Any, path: Path, refs: frozenset[str], known: Parameter | None = None) -> Any:
        """Make every parameter in the schema accept handles; return the same object if there is none."""
        self.nodes += 1
        if not is_object(schema) or self.nodes > MOST_NODES or self.depth > DEEPEST:
            return cast("Any", schema)
        whole, refs = self.followed(schema, refs)
        parameter = self.parameter(whole, path, known) if path else None
        if parameter is not None:
            if not self.giving.can(parameter.form):
                return schema
            self.hits += 1
            self.found.setdefault(path, parameter)
            return _opened(whole)
        before = self.hits
        self.depth += 1
        edited = self.inside(whole, path, refs)
        self.depth -= 1
        # A reference stays unless it leads to a parameter.
        return edited if self.hits > before else schema

    def parameter(self, schema: WireObject, path: Path, known: Parameter | None) -> Parameter | None:
        """Return the parameter at this place, if any: the configuration takes precedence over the schema."""
        is_list = "array" in schema_types(schema)
        found = known or declared_parameter(schema, path)
        if found is None and not is_list and self.is_file_param(path):
            found = openai_file(path)
        setting = self.settings.get(path)
        if setting is None:
            return found
        self.seen.add(path)
        if is_list:  # the configuration names the list, and means each of its items
            self.settings.setdefault((*path, None), setting)
            return None
        base = found or Parameter(path, "base64")
        kind = None if setting.kind == "any" else setting.kind or base.kind
        return replace(base, form=setting.form or base.form, kind=kind)

    def is_file_param(self, path: Path) -> bool:
        return bool(path) and path[0] in self.file_params and path[1:] in ((), (None,))

    def followed(self, schema: WireObject, refs: frozenset[str]) -> tuple[WireObject, frozenset[str]]:
        """Resolve the schema's local reference; each is followed once per path, so that circles end."""
        ref = schema.get("$ref")
        while isinstance(ref, str) and ref not in refs and isinstance(target := _at(self.root, ref), Mapping):
            self.nodes += 1  # a long chain costs as much as its target
            if self.nodes > MOST_NODES:
                break
            schema = {**cast("WireObject", target), **{key: value for key, value in schema.items() if key != "$ref"}}
            refs, ref = refs | {ref}, schema.get("$ref")
        return schema, refs

    def inside(self, schema: WireObject, path: Path, refs: frozenset[str]) -> WireObject:
        """Edit the schemas within a schema."""
        edited: dict[str, Any] = {}
        properties, items = schema.get("properties"), schema.get("items")
        if is_object(properties):
            edited |= self.members(schema, properties, path, refs)
        if isinstance(items, Mapping):
            edited["items"] = self.place(items, (*path, None), refs)
        for key in ("anyOf", "oneOf", "allOf"):
            if isinstance(schema.get(key), list):
                edited[key] = self.branches(schema[key], path, refs)
        changed = {key: value for key, value in edited.items() if value is not schema[key]}
        return {**schema, **changed} if changed else schema

    def members(self, schema: WireObject, properties: WireObject, path: Path, refs: frozenset[str]) -> dict[str, Any]:
        pair = paired(properties, path)
        edited = {
            name: self.place(member, (*path, name), refs, pair if pair and pair.path == (*path, name) else None)
            for name, member in properties.items()
        }
        if all(edited[name] is properties[name] for name in properties):
            return {}
        changed: dict[str, Any] = {"properties": edited}
        required = schema.get("required")
        # The media type is filled in if a handle is given.
        if pair is not None and pair.path in self.found and is_list(required) and pair.beside in required:
            changed["required"] = [name for name in required if name != pair.beside]
        return changed

    def branches(self, branches: Iterable[Any], path: Path, refs: frozenset[str]) -> Any:
        edited = [self.node(branch, path, refs) for branch in branches]
        if all(new is old for new, old in zip(edited, branches, strict=True)):
            return branches
        parameter = self.found.get(path)
        if parameter is not None and any(
            is_plain_text(old) and new is old for new, old in zip(edited, branches, strict=True)
        ):
            self.found[path] = replace(parameter, takes_urls=True)
        return edited


def _opened(schema: WireObject) -> dict[str, Any]:
    """Return the schema without everything that rejects some texts."""
    kept = {key: value for key, value in schema.items() if key not in _NARROW}
    if branches_of(schema):
        for key in ("anyOf", "oneOf"):
            if isinstance(kept.get(key), list):
                kept[key] = [_opened_branch(branch) for branch in kept[key]]
        return kept
    nullable = "null" in schema_types(schema)
    kept = {key: value for key, value in kept.items() if key not in _OF_OBJECTS}
    return {**kept, "type": ["string", "null"] if nullable else "string"}


def _opened_branch(branch: Any) -> Any:
    if is_object(branch) and schema_types(branch) & {"string", "object"}:
        return _opened(branch)
    return cast("Any", branch)


def _file_params(tool: WireObject) -> frozenset[str]:
    meta = tool.get("_meta")
    listed = as_list(as_object(meta).get("openai/fileParams"))
    return frozenset(name for name in listed if isinstance(name, str))


def _at(root: WireObject, ref: str) -> Any:
    """Return the target of a local reference (`#/$defs/Photo`); None for any other."""
    if not ref.startswith("#/"):
        return None
    value: Any = root
    for step in ref[2:].split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if is_object(value):
            value = value.get(key)
        elif is_list(value) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value
