"""Merging tool lists: selecting, renaming and describing tools, editing them for a profile, and routing calls.

The order is that of the configuration, then each upstream's own. What an upstream declared is kept as the same objects;
each edit is noted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gateway.core import apps
from gateway.core.model.json_shape import DEEPEST, is_deep
from gateway.core.model.notes import Note
from gateway.core.model.revisions import MODERN_REVISIONS, REVISIONS
from gateway.core.model.wire import WireObject
from gateway.core.profiles.profile import Profile
from gateway.core.tools.arguments import Parameter, PossibleForms, find_parameters, path_words
from gateway.core.tools.arguments.find_parameters import SchemaPlace
from gateway.core.tools.catalogue.catalogue import Catalogue, Route, Selection, WithheldTool
from gateway.core.tools.catalogue.check_cost import TooMuchWork, check_compilable
from gateway.core.tools.catalogue.choose_tools import ToolChoice
from gateway.core.tools.catalogue.faults import FaultMemo
from gateway.core.tools.catalogue.names import NameRules, Names
from gateway.core.tools.catalogue.output_schemas import offered_output_schema
from gateway.core.tools.catalogue.prefixes import OWN, Prefixing, PrefixRule, tool_identity
from gateway.core.tools.catalogue.repair import repaired, unusable
from gateway.core.tools.catalogue.schemas import shown_to, with_lost_words
from gateway.core.wording import counted, plain

_LONGEST_SHOWN = 100


def build(
    tools_by_upstream: Mapping[str, Sequence[WireObject]],
    settings: Mapping[str, Selection],
    prefix: PrefixRule,
    profile: Profile,
    registered_as: str = "mcp-gateway",
    *,
    revision: str = REVISIONS[-1],
    giving: Mapping[str, PossibleForms] | None = None,
    shows_apps: bool = False,
    keeps_schemas: bool = False,
    faults: FaultMemo | None = None,
    withheld: Iterable[WithheldTool] = (),
) -> Catalogue:
    """Merge the raw tool lists of upstreams, given in the order of the configuration. Never raises for their contents.

    `prefix`: `always`; `when-needed`: every tool whose name another upstream has too; `never`: the first upstream keeps
    a name, and later ones get the prefix. `registered_as` is the name under which the host knows the gateway. Before
    2026-07-28, hosts accept output schemas for objects only: others are left out. `giving` says in which forms each
    upstream may be given content; arguments of the others, and of the gateway's own tools, stay as they are.
    `shows_apps`: whether the host shows pages (MCP Apps); tools that are for pages alone are hidden from the others.
    `keeps_schemas`: whether all hosts of these tools are told what their results are, as those that choose them are.
    `faults` remembers the faults of schemas while catalogues of other profiles are built from the same lists.
    `withheld` are tools that are left out; they take no name from the others.
    """
    merger = _Merger(
        profile,
        NameRules.of(profile.tools, registered_as),
        {upstream: selection.content for upstream, selection in settings.items()},
        giving or {},
        faults or FaultMemo(),
        objects_only=revision not in MODERN_REVISIONS,
        shows_apps=shows_apps,
        keeps_schemas=keeps_schemas,
    )
    order = sorted(tools_by_upstream, key=lambda upstream: upstream != OWN)
    found = [
        candidate
        for upstream in order
        for candidate in merger.candidates(upstream, tools_by_upstream[upstream], settings.get(upstream))
    ]
    left_out = {(each.upstream, each.tool): each for each in withheld}
    merger.offer([each for each in found if (each.upstream, each.tool) not in left_out], prefix)
    merger.withhold(
        [(each, left_out[key]) for each in found if (key := (each.upstream, each.tool)) in left_out], prefix
    )
    return merger.catalogue()


@dataclass(frozen=True)
class _Candidate:
    """A usable tool that was selected. `name` is the upstream's, or the one that it was renamed to."""

    upstream: str
    tool: str
    name: str
    declared: WireObject
    description: str | None
    has_budget: bool

    @property
    def key(self) -> str:
        return self.tool


class _Merger:
    def __init__(
        self,
        profile: Profile,
        rules: NameRules,
        content: Mapping[str, Mapping[str, Mapping[str, SchemaPlace]]],
        giving: Mapping[str, PossibleForms],
        faults: FaultMemo,
        *,
        objects_only: bool,
        shows_apps: bool,
        keeps_schemas: bool,
    ) -> None:
        self.profile = profile
        self.rules = rules
        self.names = Names(rules)
        self.content = content
        self.giving = giving
        self.faults = faults
        self.objects_only = objects_only
        self.shows_apps = shows_apps
        self.keeps_schemas = keeps_schemas
        self.tools: list[dict[str, Any]] = []
        self.routes: dict[str, Route] = {}
        self.notes: list[Note] = []
        self.problems: list[Note] = []
        self.over_limit: Note | None = None
        self.unmatched: list[Note] = []
        self.originals: dict[str, WireObject] = {}
        self.own_names: dict[str, tuple[Route, ...]] = {}
        self.listed: list[str] = []
        self.withheld: dict[str, WithheldTool] = {}
        self.offered: dict[tuple[str, str], str] = {}
        """The names under which tools are offered, by upstream and the upstream's own name."""

    def edit(self, offered: str, what: str) -> None:
        self.notes.append(Note(kind="schema", text=f"{offered}: {what}"))

    def problem(self, kind: Literal["dropped", "schema"], text: str) -> Note:
        note = Note(kind=kind, text=text)
        self.problems.append(note)
        self.notes.append(note)
        return note

    def catalogue(self) -> Catalogue:
        takes = any(route.parameters for route in self.routes.values())
        notes, problems = tuple(self.notes), tuple(self.problems)
        return Catalogue(
            tuple(self.tools),
            self.routes,
            notes,
            problems,
            self.originals,
            takes,
            self.own_names,
            frozenset(self.listed),
            self.over_limit,
            tuple(self.unmatched),
            self.withheld,
        )

    def candidates(self, upstream: str, tools: Sequence[WireObject], selection: Selection | None) -> list[_Candidate]:
        """Return the usable, selected tools of one upstream, each name once, as calls could not tell two apart."""
        found: dict[str, _Candidate] = {}
        for position, tool in enumerate(tools, start=1):
            why = unusable(tool, self.faults)
            if why is not None:
                self.problem("dropped", f"{upstream}: {_described(tool, position)} withheld: {why}")
                continue
            name = str(tool["name"])
            if selection is not None and not _is_offered(name, selection):
                continue
            if name in found:
                self.problem("dropped", f"{upstream}: a second tool named {_quoted(name)} withheld")
                continue
            renamed = (selection.rename.get(name) if selection else None) or name
            with_lost_words = selection.describe.get(name) if selection else None
            has_budget = selection is not None and name in selection.max_tokens
            found[name] = _Candidate(upstream, name, renamed, tool, with_lost_words, has_budget)
        if tools and selection is not None:
            self.check_keys(upstream, selection, found)
        return list(found.values())

    def check_keys(self, upstream: str, selection: Selection, found: Mapping[str, _Candidate]) -> None:
        """Report settings of tools that are not there, mistakes that would otherwise go unnoticed."""
        by_name = (
            ("rename", selection.rename),
            ("describe", selection.describe),
            ("max_tokens", selection.max_tokens),
            ("content", selection.content),
        )
        for key, edits in by_name:
            for name in edits:
                if name not in found:
                    words = f"upstreams.{upstream}.tools.{key}: no tool named {_quoted(name)} is offered"
                    self.unmatched.append(self.problem("schema", words))

    def offer(self, candidates: Sequence[_Candidate], prefix: PrefixRule) -> None:
        prefixing = Prefixing.of(prefix, self.rules, candidates)
        left_out: list[str] = []
        for candidate in candidates:
            given = self.names.give(prefixing.wanted(candidate), tool_identity(candidate))
            if not self._is_offered(candidate):
                continue
            # Tools beyond the limit get names too, so that a name does not depend on the limit.
            if self.profile.tools.max_tools is not None and len(self.tools) >= self.profile.tools.max_tools:
                left_out.append(given.name)
                continue
            if given.changes:
                note = Note(
                    kind="schema",
                    text=f"{_quoted(candidate.name)} of {candidate.upstream} is offered as {_quoted(given.name)}: "
                    f"{', '.join(given.changes)}",
                )
                self.notes.append(note)
                if given.collided:
                    self.problems.append(note)
            tool, parameters = self._edited(candidate, given.name)
            if is_deep(tool):  # an edit that inlined a reference has made it so
                words = f"tool {_quoted(candidate.tool)} withheld: it nests deeper than {DEEPEST} levels"
                self.problem("dropped", f"{candidate.upstream}: {words}")
                continue
            self.tools.append(tool)
            self.routes[given.name] = self._route(candidate, parameters)
            self.offered[candidate.upstream, candidate.tool] = given.name
        if self.shows_apps:
            self._name_for_apps(candidates)
        if left_out:
            limit = self.profile.tools.max_tools
            words = f"{counted(len(left_out), 'tool')} beyond the host's limit of {limit}: {', '.join(left_out)}"
            self.over_limit = self.problem("dropped", words)

    def withhold(self, candidates: Sequence[tuple[_Candidate, WithheldTool]], prefix: PrefixRule) -> None:
        """Note tools that are withheld, by names that no offered tool has."""
        prefixing = Prefixing.of(prefix, self.rules, [candidate for candidate, _ in candidates])
        for candidate, withheld in candidates:
            given = self.names.give(prefixing.wanted(candidate), tool_identity(candidate))
            self.withheld[given.name] = withheld
            text = f"{_quoted(candidate.name)} of {candidate.upstream} is withheld: {withheld.why}"
            self.notes.append(Note(kind="dropped", text=text))

    def _is_offered(self, candidate: _Candidate) -> bool:
        """Whether the host is offered the tool: one that only pages may call is useless for a host without pages."""
        if self.shows_apps or apps.for_the_model(candidate.declared):
            return True
        text = (
            f"{_quoted(candidate.name)} of {candidate.upstream} is hidden: only pages call it, and the host shows none"
        )
        self.notes.append(Note(kind="schema", text=text))
        return False

    def _route(self, candidate: _Candidate, parameters: tuple[Parameter, ...]) -> Route:
        declared = candidate.declared
        return Route(
            candidate.upstream,
            candidate.tool,
            parameters,
            apps.audience(declared) if self.shows_apps else "model",
            self.shows_apps and bool(apps.pages(declared)),
            not apps.for_the_model(declared),
        )

    def _name_for_apps(self, candidates: Sequence[_Candidate]) -> None:
        """Register the tools that pages call by the names that pages know: those of their upstreams."""
        for candidate in candidates:
            if candidate.upstream != OWN and apps.for_apps(candidate.declared):
                # No host's model reads the results of such a call, and its arguments are the page's own.
                route = replace(self._route(candidate, ()), audience="app", shows_page=False)
                self.own_names[candidate.tool] = (*self.own_names.get(candidate.tool, ()), route)
        if self.profile.apps.calls == "listed":
            self._list_for_apps(candidates)

    def _list_for_apps(self, candidates: Sequence[_Candidate]) -> None:
        """List the tools that pages call under their own names too, each name once; tools for pages alone only so."""
        for candidate in candidates:
            if not self.own_names.get(candidate.tool) or apps.audience(candidate.declared) == "model":
                continue
            if candidate.tool not in self.listed:
                if candidate.tool in self.routes or self.rules.fitted(candidate.tool, candidate.tool) != candidate.tool:
                    continue
                self._unlist_for_pages(candidate)
                if not self._has_room():
                    continue
                self._list_for_pages(candidate)
            self._unlist_for_pages(candidate)

    def _list_for_pages(self, candidate: _Candidate) -> None:
        """List a tool under its own name. There it has no page of its own: nothing opens one for a page's call."""
        tool, _ = repaired(candidate.declared, self.faults)
        self._offer_output_schema(tool, candidate)
        tool["_meta"] = apps.without_pages(tool.get("_meta"))
        self._add_meta(tool, candidate.upstream)
        meta: dict[str, Any] = tool["_meta"]
        tool["_meta"] = {**meta, "ui": {**meta.get("ui", {}), "visibility": ["app"]}}
        self.tools.append(tool)
        self.listed.append(candidate.tool)
        self.routes[candidate.tool] = self.own_names[candidate.tool][0]
        self.edit(candidate.tool, "listed for pages alone, because this host's pages can call only what is listed")

    def _unlist_for_pages(self, candidate: _Candidate) -> None:
        """Remove a tool for pages alone from the list under the name that no page knows. It can still be called."""
        name = self.offered.get((candidate.upstream, candidate.tool))
        if not apps.for_the_model(candidate.declared):
            self.tools = [tool for tool in self.tools if tool["name"] != name]

    def _has_room(self) -> bool:
        """Whether the host accepts another tool."""
        most = self.profile.tools.max_tools
        return most is None or len(self.tools) < most

    def _edited(self, candidate: _Candidate, offered: str) -> tuple[dict[str, Any], tuple[Parameter, ...]]:
        """Return the tool as it is offered, and its arguments that take content."""
        tool, changes = repaired(candidate.declared, self.faults)
        for change in changes:
            self.edit(offered, change)
        if candidate.name != candidate.tool:
            self.edit(offered, f"renamed from {_quoted(candidate.tool)}, as configured")
        tool["name"] = offered
        if candidate.description is not None:
            tool["description"] = candidate.description
            self.edit(offered, "described as configured")
        # This comes first, because arguments are later checked against a schema that accepts handles too.
        parameters = self._offer_handles(tool, candidate)
        self._describe(tool, candidate, self._show_schema(tool))
        self._offer_output_schema(tool, candidate)
        self._add_meta(tool, candidate.upstream)
        return tool, parameters

    def _show_schema(self, tool: dict[str, Any]) -> tuple[str, ...]:
        """Edit the input schema for the host; return what it no longer says, as sentences."""
        shown = shown_to(tool["inputSchema"], self.profile.tools, self.faults)
        for change in shown.changes:
            self.edit(tool["name"], change)
        if shown.is_looser:
            self._check(tool["name"], tool["inputSchema"])
        tool["inputSchema"] = shown.schema
        return shown.sentences

    def _check(self, offered: str, schema: WireObject) -> None:
        """Have arguments checked against the original schema, which the host does not see, if that is possible."""
        try:
            check_compilable(schema, self.faults)
        except TooMuchWork as error:
            self.problem("schema", f"{offered}: its arguments are not checked against its inputSchema: {error}")
        else:
            self.originals[offered] = schema

    def _offer_handles(self, tool: dict[str, Any], candidate: _Candidate) -> tuple[Parameter, ...]:
        """Make the schema accept handles; return the arguments that take content."""
        giving = self.giving.get(candidate.upstream)
        if giving is None or candidate.upstream == OWN:
            return ()
        settings = self.content.get(candidate.upstream, {}).get(candidate.tool, {})
        found = find_parameters(tool, settings, replace(giving, host_files=self.profile.tools.host_files))
        tool["inputSchema"] = found.schema
        if found.parameters:
            named = ", ".join(plain(path_words(each.path), _LONGEST_SHOWN) for each in found.parameters)
            self.edit(tool["name"], f"handles are taken for {named}")
        for missing in found.missing:
            words = f"upstreams.{candidate.upstream}.tools.{candidate.tool}.content: there is no argument"
            self.unmatched.append(self.problem("schema", f"{words} {_quoted(missing)}"))
        return found.parameters

    def _describe(self, tool: dict[str, Any], candidate: _Candidate, sentences: tuple[str, ...]) -> None:
        longest, description = self.profile.tools.description_max, tool.get("description", "")
        if self.profile.tools.description_required and not description.strip():
            title = tool.get("title") or tool.get("annotations", {}).get("title") or candidate.name
            description = f"{plain(title, _LONGEST_SHOWN)}, a tool of {candidate.upstream}."
            self.edit(tool["name"], "described by its name, because this host requires a description for every tool")
        if longest is not None and len(description) > longest:
            self.edit(tool["name"], f"description of {len(description):,} characters cut to {longest:,}")
        if description := with_lost_words(description, sentences, longest):
            tool["description"] = description

    def _offer_output_schema(self, tool: dict[str, Any], candidate: _Candidate) -> None:
        if "outputSchema" not in tool or self.keeps_schemas:
            return
        for_a_page = self.shows_apps and apps.audience(candidate.declared) != "model"
        schema, change = offered_output_schema(
            tool["outputSchema"],
            self.profile,
            for_a_page=for_a_page,
            objects_only=self.objects_only,
            has_budget=candidate.has_budget,
        )
        if schema is None:
            del tool["outputSchema"]
        else:
            tool["outputSchema"] = schema
        if change is not None:
            self.edit(tool["name"], change)

    def _add_meta(self, tool: dict[str, Any], upstream: str) -> None:
        if (meta := apps.outward_meta(upstream, tool.get("_meta"))) is not tool.get("_meta"):
            tool["_meta"] = meta
            self.edit(tool["name"], f"{upstream} put in front of the uri of its page")
        present: Mapping[str, Any] = tool.get("_meta", {})
        rules = self.profile.tools
        wanted = {**rules.meta, **rules.own_meta} if upstream == OWN else rules.meta
        # The upstream's own values take precedence: it knows its tool.
        added = {key: value for key, value in wanted.items() if key not in present}
        if added:
            tool["_meta"] = {**present, **added}
            self.edit(tool["name"], f"_meta {', '.join(sorted(added))} added for this host")


def _is_offered(name: str, selection: Selection) -> bool:
    return ToolChoice(tuple(selection.include), tuple(selection.exclude)).has(name)


def _described(tool: Any, position: int) -> str:
    name = tool.get("name") if isinstance(tool, Mapping) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return f"tool {_quoted(name)}" if isinstance(name, str) and name.strip() else f"tool number {position}"


def _quoted(name: str) -> str:
    return f"'{plain(name, _LONGEST_SHOWN)}'"
