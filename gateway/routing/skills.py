"""Skills of all upstreams (SEP-2640): one list, single entries, their files and directories.

Everything is asked of the upstreams when a host asks: an entry has the digests of files as they are now, and no
notification says when they change. An upstream's skills exist for whoever its resources exist for.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import anyio

from gateway.core import apps, skills
from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object, is_dict, is_list, objects_in
from gateway.core.model.wire import UNKNOWN_RESOURCE, WireObject
from gateway.core.tools.catalogue.hints import merge_hints, of_pages
from gateway.errors import UnknownResource, UnknownSkill, UpstreamError, UpstreamGarbage, UpstreamRefused
from gateway.routing.log_once import Problems
from gateway.routing.ports import Ask, UpstreamPort, UpstreamsPort
from gateway.routing.resources import Resources
from gateway.routing.visible_upstreams import sharing
from gateway.upstream import RequestContext, UpstreamState
from gateway.upstream.connection.allowance import Allowance

logger = logging.getLogger(__name__)

_READ_DIRECTORY = "resources/directory/read"
METHODS = frozenset({"skills/list", "skills/get", _READ_DIRECTORY})

_ASKED = (UpstreamState.READY, UpstreamState.SLEEPING)
_REMEDY = "list the skills again"


class ListedSkill(NamedTuple):
    """A sound entry as its upstream wrote it."""

    upstream: str
    entry: WireObject

    @property
    def uri(self) -> str:
        """The URI of the skill for hosts."""
        return apps.outward(self.upstream, str(self.entry["uri"]))


class _Part(NamedTuple):
    """One upstream's share of the list; `hint` is what it says of its lifetime, None if it could not be listed."""

    entries: tuple[WireObject, ...]
    hint: Mapping[str, Any] | None


class Skills:
    """Answers requests about skills."""

    def __init__(self, upstreams: UpstreamsPort, resources: Resources) -> None:
        self._upstreams = upstreams
        self._resources = resources
        self._problems = Problems()

    async def answer(self, method: str, params: Mapping[str, Any], ask: Ask, context: RequestContext) -> dict[str, Any]:
        """Return the raw result of one of `METHODS`.

        Raises:
            UnknownSkill: there is no such skill or directory, or several upstreams have it.
            UpstreamError: the upstream could not answer, or refused.
        """
        match method:
            case "skills/list":
                return await self._list(ask, context)
            case "skills/get":
                skill, result = await self.get(str(params.get("uri")), ask, context)
                return {**result, "skill": skills.outward_entry(*skill)}
            case _:
                return await self._children(str(params.get("uri")), params, ask, context)

    async def listed(self, ask: Ask, context: RequestContext) -> list[ListedSkill]:
        """Return the skills that the caller's upstreams list, in the order of the configuration."""
        parts = await self._parts(ask, context)
        return [ListedSkill(name, entry) for name, part in parts.items() for entry in part.entries]

    async def get(self, uri: str, ask: Ask, context: RequestContext) -> tuple[ListedSkill, dict[str, Any]]:
        """Return the entry of a skill, listed or not, and the raw result that it came in.

        Raises:
            UnknownSkill, UpstreamError: as `answer`.
        """
        name, there, result = await self._located("skills/get", uri, {"uri": uri}, ask, context, _has_skills)
        entry = result.get("skill")
        fault = skills.fault_of(entry)
        if fault is None and as_object(entry).get("uri") != there:
            fault = "its entry is that of another skill"
        if fault is not None:
            raise UnknownSkill(f"{name} has no sound skill {plain(uri)}: {fault}", remedy=_REMEDY)
        return ListedSkill(name, as_object(entry)), result

    async def read(self, uri: str, params: Mapping[str, Any], ask: Ask, context: RequestContext) -> dict[str, Any]:
        """Return the raw result of `resources/read` for a `skill://` URI: the bytes are the upstream's own.

        Raises:
            UnknownResource: no upstream has it, or several do.
            UpstreamError: the upstream could not answer, or refused.
        """
        try:
            name, _, result = await self._located("resources/read", uri, params, ask, context, _has_resources)
        except UnknownSkill as error:
            raise UnknownResource(error.message, uri=uri, remedy=error.remedy) from error
        return apps.outward_contents(name, result)

    async def _list(self, ask: Ask, context: RequestContext) -> dict[str, Any]:
        parts = await self._parts(ask, context)
        merged: dict[str, dict[str, Any]] = {}
        problems: list[str] = []
        for name, part in parts.items():
            for entry in part.entries:
                outward = skills.outward_entry(name, entry)
                first = merged.setdefault(outward["uri"], outward)
                if first is not outward:
                    owner = first["_meta"][skills.ORIGIN_KEY]
                    problems.append(f"{plain(outward['uri'])} of {name} is withheld: {owner} lists it already")
        self._problems.report(problems, "skills")
        hints = merge_hints(part.hint or {} for part in parts.values())
        return {"skills": list(merged.values()), **hints}

    async def _parts(self, ask: Ask, context: RequestContext) -> dict[str, _Part]:
        """Ask all upstreams with skills at once. One that fails or is slow is left out, and logged."""
        upstreams = sharing(self._upstreams, context.caller)
        names = [name for name in upstreams if _has_skills(upstreams[name]) and upstreams[name].state in _ASKED]
        found: dict[str, _Part] = {}

        async def fetch(name: str) -> None:
            found[name] = _Part((), None)
            with anyio.move_on_after(upstreams[name].settings.timeout.start):
                try:
                    found[name] = await self._part(name, upstreams[name], ask, context)
                except UpstreamError as error:
                    logger.warning("the skills of %s are not listed: %s", name, plain(error.message))

        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(partial(fetch, name))
        return {name: found[name] for name in names}

    async def _part(self, name: str, upstream: UpstreamPort, ask: Ask, context: RequestContext) -> _Part:
        context = replace(context, is_part=True, on_progress=None)
        allowance = Allowance(upstream.settings.limits.list_bytes)
        pages: list[WireObject] = []
        seen: set[str] = set()
        params: dict[str, Any] = {}
        while True:
            result = await ask(name, "skills/list", params, context)
            page = result.get("skills")
            if not is_list(page):
                raise UpstreamGarbage(name, "answered skills/list without a list of skills")
            about = {key: value for key, value in result.items() if key != "skills"}
            goes_on = await allowance.take((entry for entry in page if is_dict(entry)), about)
            pages.append(about)
            cursor = result.get("nextCursor")
            if not goes_on or not isinstance(cursor, str) or not cursor or cursor in seen or not allowance.follow():
                break
            seen.add(cursor)
            params = {"cursor": cursor}
        if allowance.cut is not None:
            count = f"only the first {len(allowance.items):,} skills are listed"
            self._problems.report([f"{name}: {count}: there are {allowance.cut}"], "skills")
        return _Part(self._sound(name, allowance.items, context), of_pages(pages))

    def _sound(self, name: str, entries: list[dict[str, Any]], context: RequestContext) -> tuple[WireObject, ...]:
        problems: list[str] = []
        kept: dict[str, WireObject] = {}
        for entry in entries:
            if (fault := skills.fault_of(entry)) is not None:
                problems.append(f"{plain(str(entry.get('uri')))} of {name} is withheld: {fault}")
            elif self._resources.exists(name, entry["uri"], context.caller):
                kept.setdefault(entry["uri"], entry)
        self._problems.report(problems, "skills")
        return tuple(kept.values())

    async def _children(self, uri: str, params: Mapping[str, Any], ask: Ask, context: RequestContext) -> dict[str, Any]:
        upstreams = sharing(self._upstreams, context.caller)
        front = apps.split(uri)
        if front is not None and front[0] in upstreams and not _reads_directories(upstreams[front[0]]):
            return await self._described_children(*front, ask, context)
        name, _, result = await self._located(_READ_DIRECTORY, uri, params, ask, context, _reads_directories)
        found = (child for child in objects_in(result.get("resources")) if isinstance(child.get("uri"), str))
        children = [child for child in found if self._exists(_READ_DIRECTORY, name, child["uri"], context.caller)]
        return skills.outward_children(name, {**result, "resources": children})

    async def _described_children(self, name: str, there: str, ask: Ask, context: RequestContext) -> dict[str, Any]:
        """Answer for an upstream that reads no directories itself, by the entries of the skills that it lists."""
        entries = [skill.entry for skill in await self.listed(ask, context) if skill.upstream == name]
        children = skills.children_of(there, entries)
        if children is None:
            raise UnknownSkill(f"{plain(apps.outward(name, there))} is not a directory", remedy=_REMEDY)
        return skills.outward_children(name, {"resources": children})

    async def _located(
        self,
        method: str,
        uri: str,
        params: Mapping[str, Any],
        ask: Ask,
        context: RequestContext,
        is_able: Callable[[UpstreamPort], bool],
    ) -> tuple[str, str, dict[str, Any]]:
        """Return the upstream that has a URI, the URI as it is known there, and its answer.

        A URI with an upstream's name in front is that upstream's alone. Any other is one that an upstream's own words
        name, in its instructions for instance: it is found if just one upstream has it.
        """
        upstreams = sharing(self._upstreams, context.caller)
        front = apps.split(uri)
        if front is not None and front[0] in upstreams:
            # Its own URIs may begin with its own name.
            for there in (front[1], uri):
                if (result := await self._asked(front[0], method, there, params, ask, context)) is not None:
                    return front[0], there, result
            raise UnknownSkill(f"{front[0]} does not have {plain(uri)}", remedy=_REMEDY)
        found: dict[str, dict[str, Any]] = {}
        absent: list[str] = []
        for name in upstreams:
            if not is_able(upstreams[name]):
                continue
            try:
                if (result := await self._asked(name, method, uri, params, ask, context)) is not None:
                    found[name] = result
            except UpstreamError as error:
                absent.append(plain(error.message))
        if len(found) > 1:
            several = ", ".join(plain(apps.outward(name, uri)) for name in found)
            raise UnknownSkill(f"several upstreams have {plain(uri)}", remedy=f"ask for one of {several}")
        for name, result in found.items():
            return name, uri, result
        why = f"; not asked: {'; '.join(absent)}" if absent else ""
        raise UnknownSkill(f"no upstream has {plain(uri)}{why}", remedy=_REMEDY)

    async def _asked(
        self, name: str, method: str, uri: str, params: Mapping[str, Any], ask: Ask, context: RequestContext
    ) -> dict[str, Any] | None:
        """Return the answer of an upstream about its own URI; None if it has no such one for the caller."""
        if not self._exists(method, name, uri, context.caller):
            return None
        try:
            return await ask(name, method, {**params, "uri": uri}, context)
        except UpstreamRefused as error:
            if error.code not in UNKNOWN_RESOURCE:
                raise
            return None

    def _exists(self, method: str, name: str, uri: str, caller: Caller) -> bool:
        """Whether a URI may exist for the caller; the directory of a skill does if the skill does."""
        if self._resources.exists(name, uri, caller):
            return True
        return method == _READ_DIRECTORY and self._resources.exists(name, f"{uri}/{skills.MANIFEST}", caller)


def _has_skills(upstream: UpstreamPort) -> bool:
    return skills.has_skills(upstream.capabilities)


def _reads_directories(upstream: UpstreamPort) -> bool:
    return skills.reads_directories(upstream.capabilities)


def _has_resources(upstream: UpstreamPort) -> bool:
    return "resources" in upstream.capabilities
