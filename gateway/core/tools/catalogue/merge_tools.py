"""Merging tool lists: selecting, renaming and describing tools, editing them for a profile, and routing calls.

The order is that of the configuration, then each upstream's own. What an upstream declared is kept as the same objects;
each edit is noted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gateway.core import apps
from gateway.core.fact_words import counted
from gateway.core.model.json_shape import DEEPEST, is_deep
from gateway.core.model.notes import Note
from gateway.core.model.revisions import MODERN_REVISIONS, REVISIONS
from gateway.core.model.wire import WireObject
from gateway.core.profiles.profile import Profile
from gateway.core.tools.arguments import Parameter, PossibleForms
from gateway.core.tools.arguments.find_parameters import SchemaPlace
from gateway.core.tools.catalogue.catalogue import Catalogue, Route, Selection, WithheldTool
from gateway.core.tools.catalogue.choose_tools import ToolChoice
from gateway.core.tools.catalogue.edit_tools import Candidate, CatalogueNotes, ToolEditor, quoted
from gateway.core.tools.catalogue.faults import FaultMemo
from gateway.core.tools.catalogue.names import NameRules, Names
from gateway.core.tools.catalogue.prefixes import OWN, Prefixing, PrefixRule, tool_identity
from gateway.core.tools.catalogue.repair import declared_name, unusable

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
        self.faults = faults
        self.shows_apps = shows_apps
        self.notes = CatalogueNotes()
        self.editor = ToolEditor(
            *(profile, content, giving, faults, self.notes),
            objects_only=objects_only,
            shows_apps=shows_apps,
            keeps_schemas=keeps_schemas,
        )
        self.tools: list[dict[str, Any]] = []
        self.routes: dict[str, Route] = {}
        self.over_limit: Note | None = None
        self.own_names: dict[str, tuple[Route, ...]] = {}
        self.listed: list[str] = []
        self.withheld: dict[str, WithheldTool] = {}
        self.offered: dict[tuple[str, str], str] = {}
        """The names under which tools are offered, by upstream and the upstream's own name."""

    def catalogue(self) -> Catalogue:
        takes = any(route.parameters for route in self.routes.values())
        notes, problems = tuple(self.notes.all), tuple(self.notes.problems)
        return Catalogue(
            tuple(self.tools),
            self.routes,
            notes,
            problems,
            self.editor.originals,
            takes,
            self.own_names,
            frozenset(self.listed),
            self.over_limit,
            tuple(self.editor.unmatched),
            self.withheld,
        )

    def candidates(self, upstream: str, tools: Sequence[WireObject], selection: Selection | None) -> list[Candidate]:
        """Return the usable, selected tools of one upstream, each name once, as calls could not tell two apart."""
        found: dict[str, Candidate] = {}
        for position, tool in enumerate(tools, start=1):
            why = unusable(tool, self.faults)
            if why is not None:
                self.notes.problem("dropped", f"{upstream}: {_described(tool, position)} withheld: {why}")
                continue
            name = str(tool["name"])
            if selection is not None and not _is_offered(name, selection):
                continue
            if name in found:
                self.notes.problem("dropped", f"{upstream}: a second tool named {quoted(name)} withheld")
                continue
            renamed = (selection.rename.get(name) if selection else None) or name
            with_lost_words = selection.describe.get(name) if selection else None
            has_budget = selection is not None and name in selection.max_tokens
            found[name] = Candidate(upstream, name, renamed, tool, with_lost_words, has_budget)
        if tools and selection is not None:
            self.check_keys(upstream, selection, found)
        return list(found.values())

    def check_keys(self, upstream: str, selection: Selection, found: Mapping[str, Candidate]) -> None:
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
                    words = f"upstreams.{upstream}.tools.{key}: no tool named {quoted(name)} is offered"
                    self.editor.unmatched.append(self.notes.problem("schema", words))

    def offer(self, candidates: Sequence[Candidate], prefix: PrefixRule) -> None:
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
                    text=f"{quoted(candidate.name)} of {candidate.upstream} is offered as {quoted(given.name)}: "
                    f"{', '.join(given.changes)}",
                )
                self.notes.all.append(note)
                if given.collided:
                    self.notes.problems.append(note)
            tool, parameters = self.editor.edited(candidate, given.name)
            if is_deep(tool):  # an edit that inlined a reference has made it so
                words = f"tool {quoted(candidate.tool)} withheld: it nests deeper than {DEEPEST} levels"
                self.notes.problem("dropped", f"{candidate.upstream}: {words}")
                continue
            self.tools.append(tool)
            self.routes[given.name] = self._route(candidate, parameters)
            self.offered[candidate.upstream, candidate.tool] = given.name
        if self.shows_apps:
            self._name_for_apps(candidates)
        if left_out:
            limit = self.profile.tools.max_tools
            words = f"{counted(len(left_out), 'tool')} beyond the host's limit of {limit}: {', '.join(left_out)}"
            self.over_limit = self.notes.problem("dropped", words)

    def withhold(self, candidates: Sequence[tuple[Candidate, WithheldTool]], prefix: PrefixRule) -> None:
        """Note tools that are withheld, by names that no offered tool has."""
        prefixing = Prefixing.of(prefix, self.rules, [candidate for candidate, _ in candidates])
        for candidate, withheld in candidates:
            given = self.names.give(prefixing.wanted(candidate), tool_identity(candidate))
            self.withheld[given.name] = withheld
            text = f"{quoted(candidate.name)} of {candidate.upstream} is withheld: {withheld.why}"
            self.notes.all.append(Note(kind="dropped", text=text))

    def _is_offered(self, candidate: Candidate) -> bool:
        """Whether the host is offered the tool: one that only pages may call is useless for a host without pages."""
        if self.shows_apps or apps.for_the_model(candidate.declared):
            return True
        text = (
            f"{quoted(candidate.name)} of {candidate.upstream} is hidden: only pages call it, and the host shows none"
        )
        self.notes.all.append(Note(kind="schema", text=text))
        return False

    def _route(self, candidate: Candidate, parameters: tuple[Parameter, ...]) -> Route:
        declared = candidate.declared
        return Route(
            candidate.upstream,
            candidate.tool,
            parameters,
            apps.audience(declared) if self.shows_apps else "model",
            self.shows_apps and bool(apps.pages(declared)),
            not apps.for_the_model(declared),
        )

    def _name_for_apps(self, candidates: Sequence[Candidate]) -> None:
        """Register the tools that pages call by the names that pages know: those of their upstreams."""
        for candidate in candidates:
            if candidate.upstream != OWN and apps.for_apps(candidate.declared):
                # No host's model reads the results of such a call, and its arguments are the page's own.
                route = replace(self._route(candidate, ()), audience="app", shows_page=False)
                self.own_names[candidate.tool] = (*self.own_names.get(candidate.tool, ()), route)
        if self.profile.apps.calls == "listed":
            self._list_for_apps(candidates)

    def _list_for_apps(self, candidates: Sequence[Candidate]) -> None:
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

    def _list_for_pages(self, candidate: Candidate) -> None:
        """List a tool under its own name."""
        self.tools.append(self.editor.for_pages(candidate))
        self.listed.append(candidate.tool)
        self.routes[candidate.tool] = self.own_names[candidate.tool][0]
        why = "listed for pages alone, because this host's pages can call only what is listed"
        self.notes.edit(candidate.tool, why)

    def _unlist_for_pages(self, candidate: Candidate) -> None:
        """Remove a tool for pages alone from the list under the name that no page knows. It can still be called."""
        name = self.offered.get((candidate.upstream, candidate.tool))
        if not apps.for_the_model(candidate.declared):
            self.tools = [tool for tool in self.tools if tool["name"] != name]

    def _has_room(self) -> bool:
        """Whether the host accepts another tool."""
        most = self.profile.tools.max_tools
        return most is None or len(self.tools) < most


def _is_offered(name: str, selection: Selection) -> bool:
    return ToolChoice(tuple(selection.include), tuple(selection.exclude)).has(name)


def _described(tool: Any, position: int) -> str:
    name = declared_name(tool)
    return f"tool number {position}" if name is None else f"tool {quoted(name)}"
