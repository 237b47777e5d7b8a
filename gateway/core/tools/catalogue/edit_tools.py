"""Editing a tool: the changes that make it fit its host, each of which is noted."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from gateway.core import apps
from gateway.core.fact_words import plain
from gateway.core.model.notes import Note
from gateway.core.model.wire import WireObject
from gateway.core.profiles.profile import Profile
from gateway.core.tools.arguments import Parameter, PossibleForms, find_parameters, path_words
from gateway.core.tools.arguments.find_parameters import SchemaPlace
from gateway.core.tools.catalogue.check_cost import TooMuchWork, check_compilable
from gateway.core.tools.catalogue.faults import FaultMemo
from gateway.core.tools.catalogue.output_schemas import offered_output_schema
from gateway.core.tools.catalogue.prefixes import OWN
from gateway.core.tools.catalogue.repair import repaired
from gateway.core.tools.catalogue.schemas import shown_to, with_lost_words

_LONGEST_SHOWN = 100


@dataclass(frozen=True)
class Candidate:
    """A usable tool that was selected. `name` is the upstream's, or the one that it was renamed to."""

    upstream: str
    tool: str
    name: str
    declared: WireObject
    description: str | None
    has_budget: bool

    @property
    def key(self) -> str:
        """The key under which it is configured."""
        return self.tool


class CatalogueNotes:
    """Notes of what was changed, and of what could not be offered as it is."""

    def __init__(self) -> None:
        self.all: list[Note] = []
        self.problems: list[Note] = []

    def edit(self, offered: str, what: str) -> None:
        """Note a change of a tool."""
        self.all.append(Note(kind="schema", text=f"{offered}: {what}"))

    def problem(self, kind: Literal["dropped", "schema"], text: str) -> Note:
        """Note a problem, and return the note."""
        note = Note(kind=kind, text=text)
        self.problems.append(note)
        self.all.append(note)
        return note


class ToolEditor:
    """Edits tools for a profile; `gateway.core.tools.catalogue.merge_tools.build` explains the rest."""

    def __init__(
        self,
        profile: Profile,
        content: Mapping[str, Mapping[str, Mapping[str, SchemaPlace]]],
        giving: Mapping[str, PossibleForms],
        faults: FaultMemo,
        notes: CatalogueNotes,
        *,
        objects_only: bool,
        shows_apps: bool,
        keeps_schemas: bool,
    ) -> None:
        self._profile = profile
        self._content = content
        self._giving = giving
        self._faults = faults
        self._notes = notes
        self._objects_only = objects_only
        self._shows_apps = shows_apps
        self._keeps_schemas = keeps_schemas
        self.unmatched: list[Note] = []
        """Problems with configured arguments that no tool has."""
        self.originals: dict[str, WireObject] = {}
        """The schemas that arguments are checked against where hosts see others, by the offered name."""

    def edited(self, candidate: Candidate, offered: str) -> tuple[dict[str, Any], tuple[Parameter, ...]]:
        """Return the tool as it is offered, and its arguments that take content."""
        tool, changes = repaired(candidate.declared, self._faults)
        for change in changes:
            self._notes.edit(offered, change)
        if candidate.name != candidate.tool:
            self._notes.edit(offered, f"renamed from {quoted(candidate.tool)}, as configured")
        tool["name"] = offered
        if candidate.description is not None:
            tool["description"] = candidate.description
            self._notes.edit(offered, "described as configured")
        # This comes first, because arguments are later checked against a schema that accepts handles too.
        parameters = self._offer_handles(tool, candidate)
        self._describe(tool, candidate, self._show_schema(tool))
        self._offer_output_schema(tool, candidate)
        self._add_meta(tool, candidate.upstream)
        return tool, parameters

    def for_pages(self, candidate: Candidate) -> dict[str, Any]:
        """Return a tool as pages call it. It has no page of its own there: nothing opens one for a page's call."""
        tool, _ = repaired(candidate.declared, self._faults)
        self._offer_output_schema(tool, candidate)
        tool["_meta"] = apps.without_pages(tool.get("_meta"))
        self._add_meta(tool, candidate.upstream)
        meta: dict[str, Any] = tool["_meta"]
        tool["_meta"] = {**meta, "ui": {**meta.get("ui", {}), "visibility": ["app"]}}
        return tool

    def _show_schema(self, tool: dict[str, Any]) -> tuple[str, ...]:
        """Edit the input schema for the host; return what it no longer says, as sentences."""
        shown = shown_to(tool["inputSchema"], self._profile.tools, self._faults)
        for change in shown.changes:
            self._notes.edit(tool["name"], change)
        if shown.is_looser:
            self._check(tool["name"], tool["inputSchema"])
        tool["inputSchema"] = shown.schema
        return shown.sentences

    def _check(self, offered: str, schema: WireObject) -> None:
        """Have arguments checked against the original schema, which the host does not see, if that is possible."""
        try:
            check_compilable(schema, self._faults)
        except TooMuchWork as error:
            self._notes.problem("schema", f"{offered}: its arguments are not checked against its inputSchema: {error}")
        else:
            self.originals[offered] = schema

    def _offer_handles(self, tool: dict[str, Any], candidate: Candidate) -> tuple[Parameter, ...]:
        """Make the schema accept handles; return the arguments that take content."""
        giving = self._giving.get(candidate.upstream)
        if giving is None or candidate.upstream == OWN:
            return ()
        settings = self._content.get(candidate.upstream, {}).get(candidate.tool, {})
        found = find_parameters(tool, settings, replace(giving, host_files=self._profile.tools.host_files))
        tool["inputSchema"] = found.schema
        if found.parameters:
            named = ", ".join(plain(path_words(each.path), _LONGEST_SHOWN) for each in found.parameters)
            self._notes.edit(tool["name"], f"handles are taken for {named}")
        for missing in found.missing:
            words = f"upstreams.{candidate.upstream}.tools.{candidate.tool}.content: there is no argument"
            self.unmatched.append(self._notes.problem("schema", f"{words} {quoted(missing)}"))
        return found.parameters

    def _describe(self, tool: dict[str, Any], candidate: Candidate, sentences: tuple[str, ...]) -> None:
        longest, description = self._profile.tools.description_max, tool.get("description", "")
        if self._profile.tools.description_required and not description.strip():
            title = tool.get("title") or tool.get("annotations", {}).get("title") or candidate.name
            description = f"{plain(title, _LONGEST_SHOWN)}, a tool of {candidate.upstream}."
            why = "described by its name, because this host requires a description for every tool"
            self._notes.edit(tool["name"], why)
        if longest is not None and len(description) > longest:
            self._notes.edit(tool["name"], f"description of {len(description):,} characters cut to {longest:,}")
        if description := with_lost_words(description, sentences, longest):
            tool["description"] = description

    def _offer_output_schema(self, tool: dict[str, Any], candidate: Candidate) -> None:
        if "outputSchema" not in tool or self._keeps_schemas:
            return
        for_a_page = self._shows_apps and apps.audience(candidate.declared) != "model"
        schema, change = offered_output_schema(
            tool["outputSchema"],
            self._profile,
            for_a_page=for_a_page,
            objects_only=self._objects_only,
            has_budget=candidate.has_budget,
        )
        if schema is None:
            del tool["outputSchema"]
        else:
            tool["outputSchema"] = schema
        if change is not None:
            self._notes.edit(tool["name"], change)

    def _add_meta(self, tool: dict[str, Any], upstream: str) -> None:
        if (meta := apps.outward_meta(upstream, tool.get("_meta"))) is not tool.get("_meta"):
            tool["_meta"] = meta
            self._notes.edit(tool["name"], f"{upstream} put in front of the uri of its page")
        present: Mapping[str, Any] = tool.get("_meta", {})
        rules = self._profile.tools
        wanted = {**rules.meta, **rules.own_meta} if upstream == OWN else rules.meta
        # The upstream's own values take precedence: it knows its tool.
        added = {key: value for key, value in wanted.items() if key not in present}
        if added:
            tool["_meta"] = {**present, **added}
            self._notes.edit(tool["name"], f"_meta {', '.join(sorted(added))} added for this host")


def quoted(name: str) -> str:
    """Return a name for a note, in quotation marks and of bounded length."""
    return f"'{plain(name, _LONGEST_SHOWN)}'"
