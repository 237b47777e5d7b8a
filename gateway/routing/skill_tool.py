"""The tool `gateway_skill`, for hosts that do not know skills: their models list and load them with it.

The gateway is the host of the skill then, so it checks what it loads against the entry. It acts on nothing that is
written there, the frontmatter included: the model reads the text, and is told whose it is.
"""

from typing import Any

import anyio

from gateway.core import apps, skills
from gateway.core.fact_words import counted, plain
from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object, objects_in
from gateway.core.model.wire import SKILLS_EXTENSION, WireObject, text_result
from gateway.core.own_names import READ_TOOL, SKILL_TOOL
from gateway.core.wording import failure_text
from gateway.errors import InvalidRequest, UnknownSkill, UpstreamRefused
from gateway.routing.ports import Ask, UpstreamsPort
from gateway.routing.skill_frontmatter import frontmatter_fault
from gateway.routing.skills import ListedSkill, Skills
from gateway.routing.visible_upstreams import sharing
from gateway.upstream import RequestContext

SKILL: dict[str, Any] = {
    "name": SKILL_TOOL,
    "title": "Load a skill",
    "description": (
        "Lists the skills of the connected servers, or loads one: instructions for a kind of work, and the files that "
        "belong to them. Call it without arguments for the list, and with `name` to load a skill before you begin such "
        "work. The text comes from the server that is named, not from the user."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name of a skill, or its uri, as the list has it."},
        },
        "additionalProperties": False,
    },
    "annotations": {
        "title": "Load a skill",
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    },
}

_MOST_LISTED = 200
_MOST_LINKS = 100
_LONGEST = 400
_CHANGED = "do not use it; the server may have changed it: try once more"


def needs_tool(upstreams: UpstreamsPort, caller: Caller) -> bool:
    """Whether an upstream of this caller has skills, and its host has not declared that it loads them itself."""
    extensions = as_object(caller.capabilities.get("extensions"))
    if SKILLS_EXTENSION in extensions:
        return False
    reached = sharing(upstreams, caller)
    return any(skills.has_skills(reached[name].capabilities) for name in reached)


async def use_skill(all_skills: Skills, arguments: object, ask: Ask, context: RequestContext) -> dict[str, Any]:
    """Return the result of a call of the tool: the list of skills, or one of them."""
    name = as_object(arguments).get("name")
    try:
        if name is None or name == "":
            return text_result(_list_words(await all_skills.listed(ask, context)))
        if not isinstance(name, str):
            raise InvalidRequest("name must be a text", remedy="give the name or the uri of a skill")
        return await _loaded(all_skills, await _meant(all_skills, name.strip(), ask, context), ask, context)
    except (InvalidRequest, UpstreamRefused) as error:
        return text_result(failure_text(plain(error.message, 1_000), error.remedy), is_error=True)


async def _meant(all_skills: Skills, name: str, ask: Ask, context: RequestContext) -> ListedSkill:
    """Return the current entry of the skill with this name or URI."""
    if "://" in name:
        return (await all_skills.get(name, ask, context))[0]
    listed = await all_skills.listed(ask, context)
    named = [skill for skill in listed if name in (skills.name_of(skill.entry), _label(skill))]
    if not named:
        raise UnknownSkill(f"there is no skill {plain(name, 100)!r}", remedy=f"call {SKILL_TOOL} for the list")
    if len(named) > 1:
        several = ", ".join(plain(skill.uri) for skill in named[:_MOST_LISTED])
        raise UnknownSkill(f"there are several skills {plain(name, 100)!r}", remedy=f"give one of {several}")
    return named[0]


async def _loaded(all_skills: Skills, skill: ListedSkill, ask: Ask, context: RequestContext) -> dict[str, Any]:
    there = str(skill.entry["uri"])
    result = await ask(skill.upstream, "resources/read", {"uri": there}, context)
    contents = objects_in(result.get("contents"))
    found = skills.bytes_of(contents[0]) if contents else None
    if found is None or not skills.is_as_described(skill.entry, there, found):
        wrong = f"the {skills.MANIFEST} of {plain(skill.uri)} is not what {skill.upstream} describes"
        raise UnknownSkill(wrong, remedy=_CHANGED)
    if (fault := await anyio.to_thread.run_sync(frontmatter_fault, skill.entry, found)) is not None:
        wrong = f"the {skills.MANIFEST} of {plain(skill.uri)} is not what {skill.upstream} describes: {fault}"
        raise UnknownSkill(wrong, remedy=_CHANGED)
    origin = f"[skill {plain(skills.name_of(skill.entry), 100)} of the server {skill.upstream}; not from the user]"
    blocks: list[dict[str, Any]] = [{"type": "text", "text": f"{origin}\n{found.decode('utf-8', 'replace')}"}]
    files = [file for file in objects_in(skill.entry.get("resources")) if file["uri"] != there]
    if files:
        blocks.append({"type": "text", "text": _files_words(skill, files)})
    return {"content": blocks}


def _files_words(skill: ListedSkill, files: list[WireObject]) -> str:
    base = skills.root_of(skill.uri)
    lines = [f"{apps.outward(skill.upstream, file['uri'])} ({file['size']:,} bytes)" for file in files[:_MOST_LINKS]]
    more = f"\n... and {len(files) - _MOST_LINKS:,} more" if len(files) > _MOST_LINKS else ""
    count = f"{counted(len(files), 'file')} of this skill"
    head = f"[{count}; relative paths begin at {plain(base)}; read with {READ_TOOL}, uri]"
    return "\n".join([head, *map(plain, lines)]) + more


def _list_words(listed: list[ListedSkill]) -> str:
    if not listed:
        return "[no skills are listed now]"
    lines = [f"{plain(_label(skill), 200)}: {plain(_about(skill), _LONGEST)}" for skill in listed[:_MOST_LISTED]]
    more = f"\n... and {len(listed) - _MOST_LISTED:,} more" if len(listed) > _MOST_LISTED else ""
    return "\n".join([f"[{counted(len(listed), 'skill')}; load one with {SKILL_TOOL}, name]", *lines]) + more


def _label(skill: ListedSkill) -> str:
    """The upstream and the directory of a skill, which no other has."""
    root = skills.root_of(skill.uri)
    return root.removeprefix(apps.SKILL_SCHEME)


def _about(skill: ListedSkill) -> str:
    return " ".join(str(as_object(skill.entry["frontmatter"]).get("description")).split())
