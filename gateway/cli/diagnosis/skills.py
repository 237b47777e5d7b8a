"""Check the skills of upstreams (SEP-2640): can hosts load them, and are their files what they are said to be?"""

from collections.abc import Iterator, Mapping
from typing import Any

import anyio

from gateway.cli.diagnosis.findings import CheckResult
from gateway.core import skills
from gateway.core.fact_words import counted, plain
from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object, objects_in
from gateway.core.model.revisions import NEWEST_MODERN
from gateway.core.model.wire import WireObject
from gateway.errors import UpstreamError
from gateway.routing.skill_frontmatter import frontmatter_fault
from gateway.upstream import RequestContext, Upstream, UpstreamState

_SECONDS = 30.0
"""Time for the skills of one upstream."""
_MOST_PAGES = 50
_MOST_FILES = 500
_AUTHOR = "the server's author has to fix it"


async def check_skills(upstreams: Mapping[str, Upstream]) -> dict[str, list[CheckResult]]:
    """Read every file of every listed skill once, and return what was found, by upstream."""
    checks = {
        name: _SkillCheck(upstream)
        for name, upstream in upstreams.items()
        if upstream.state is UpstreamState.READY and skills.has_skills(upstream.capabilities)
    }
    async with anyio.create_task_group() as tasks:
        for check in checks.values():
            tasks.start_soon(check.run)
    found = {name: check.found for name, check in checks.items()}
    for name, result in _equal_names(checks):
        found[name].append(result)
    return found


class _SkillCheck:
    """The check of one upstream: what was found, and the names of its sound skills with their URIs."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._context = RequestContext(Caller(revision=NEWEST_MODERN), is_part=True)
        self._files = 0
        self.found: list[CheckResult] = []
        self.names: dict[str, str] = {}

    async def run(self) -> None:
        """Check everything within the time that there is."""
        with anyio.move_on_after(_SECONDS) as limit:
            try:
                for entry in await self._listed():
                    await self._check(entry)
            except UpstreamError as error:
                self._tell("problem", f"its skills cannot be listed: {plain(error.message, 300)}", _AUTHOR)
                return
        if limit.cancelled_caught:
            self._tell("warning", f"its skills were not all read within {_SECONDS:g} s", "run mcp-gateway doctor again")
        elif not self.found and self.names:
            self._tell("ok", f"{counted(len(self.names), 'skill')}, whose files are what they are said to be")

    async def _listed(self) -> list[Any]:
        entries: list[Any] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            params = {} if cursor is None else {"cursor": cursor}
            page = await self._upstream.request("skills/list", params, self._context)
            listed = page.get("skills")
            entries += listed if isinstance(listed, list) else []
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or not cursor:
                break
        return entries

    async def _check(self, entry: Any) -> None:
        shown = plain(str(as_object(entry).get("uri")), 200)
        if (fault := skills.fault_of(entry)) is not None:
            return self._tell("warning", f"the skill {shown} is withheld from hosts: {fault}", _AUTHOR)
        uri = str(entry["uri"])
        self.names[uri] = skills.name_of(entry)
        files = [str(file["uri"]) for file in objects_in(entry.get("resources"))] or [uri]
        for file in files:
            self._files += 1
            if self._files > _MOST_FILES:
                return None
            await self._read(entry, file)
        return None

    async def _read(self, entry: WireObject, uri: str) -> None:
        try:
            result = await self._upstream.request("resources/read", {"uri": uri}, self._context)
        except UpstreamError as error:
            words = f"{plain(uri, 200)} of a skill cannot be read: {plain(error.message, 200)}"
            return self._tell("problem", words, _AUTHOR)
        contents = objects_in(result.get("contents"))
        found = skills.bytes_of(contents[0]) if contents else None
        if found is None:
            return self._tell("problem", f"{plain(uri, 200)} of a skill was read, and has no content", _AUTHOR)
        if not skills.is_as_described(entry, uri, found):
            words = f"{plain(uri, 200)} has another size or digest than its skill says: hosts refuse it"
            return self._tell("problem", words, _AUTHOR)
        if uri == entry["uri"] and (fault := frontmatter_fault(entry, found)) is not None:
            return self._tell("problem", f"{plain(uri, 200)}: {fault}: hosts refuse it", _AUTHOR)
        return None

    def _tell(self, level: Any, text: str, remedy: str | None = None) -> None:
        self.found.append(CheckResult(f"upstream {self._upstream.name}", level, text, remedy))


def _equal_names(checks: Mapping[str, _SkillCheck]) -> Iterator[tuple[str, CheckResult]]:
    """Yield what to say of each name that skills of several upstreams have, with the last of these upstreams."""
    owners: dict[str, list[str]] = {}
    for upstream, check in checks.items():
        for name in dict.fromkeys(check.names.values()):
            owners.setdefault(name, []).append(upstream)
    for name, several in owners.items():
        if len(several) > 1:
            words = f"{', '.join(several)} each have a skill {plain(name, 100)!r}: a model has to name it by its URI"
            remedy = "keep one of them from hosts with a toolset (docs/skills.md), if they are the same"
            yield several[-1], CheckResult(f"upstream {several[-1]}", "warning", words, remedy)
