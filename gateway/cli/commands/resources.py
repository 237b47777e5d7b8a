"""`mcp-gateway resources`: list the resources, resource templates, prompts and skills that a host would be offered."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from gateway.cli.command_context import (
    AsJson,
    ConfigFile,
    ProfileNames,
    Revision,
    UpstreamUrls,
    chosen_profiles,
    profile_option,
    run_until_signal,
    settings_for,
    the_profile,
    the_profiles,
    without_waiting,
)
from gateway.cli.command_remedies import why_missing
from gateway.cli.exit_codes import DONE, UNAVAILABLE, complain
from gateway.cli.given_options import GivenOptions
from gateway.cli.known_upstream import check_upstream
from gateway.cli.named_callers import PrincipalName, TokenName, named_caller
from gateway.cli.pages import WithPages, declaring, expected, tell_of_pages
from gateway.cli.progress import Wait, is_there
from gateway.cli.server_completion import upstream_names
from gateway.cli.terminal import remark, say, say_json, say_table
from gateway.cli.toolset_option import ToolsetName
from gateway.config.schema import Settings
from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object, objects_in
from gateway.core.model.revisions import REVISIONS
from gateway.runtime import run_gateway

_LISTS = {
    "resources": ("resources/list", "uri", "resource"),
    "templates": ("resources/templates/list", "uriTemplate", "template"),
    "prompts": ("prompts/list", "name", "prompt"),
    "skills": ("skills/list", "uri", "skill"),
}
"""What is listed: the request, the key that names each, and the heading."""

_KEYS = {"templates": "resourceTemplates"}
_LONGEST = 300

_Listed = tuple[dict[str, list[dict[str, Any]]], Mapping[str, str]]


def resources(
    servers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[UPSTREAM]...", help="Only what these have. Default: all.", autocompletion=upstream_names
        ),
    ] = None,
    config: ConfigFile = None,
    upstream: UpstreamUrls = None,
    profile: Annotated[ProfileNames, profile_option("Profile of the host. Default: gateway.profile.")] = None,
    revision: Revision = REVISIONS[-1],
    app: WithPages = False,
    token: TokenName = None,
    principal: PrincipalName = None,
    toolset: ToolsetName = None,
    as_json: AsJson = False,
) -> int:
    """List the resources, templates, prompts and skills of all upstreams, or of those named, as a host is offered them.

    Each of these upstreams is started and waited for, up to its own limit. Ctrl-C lists what is known so far.
    `mcp-gateway read URI` reads a resource.
    """
    settings = settings_for(config, upstream)
    asking = named_caller(settings, token, principal).with_toolset(settings, toolset)
    settings = asking.reached_of(settings)
    for server in servers or ():
        check_upstream(server, settings.upstreams)
    if servers:
        named = {name: one for name, one in settings.upstreams.items() if name in servers}
        settings = settings.model_copy(update={"upstreams": named})
    name = the_profile(profile) or asking.profile or settings.gateway.profile or "default"
    ((chosen, rules),) = chosen_profiles(settings, [name], revision).items()
    settings, caller = without_waiting(settings, chosen, revision)
    caller = asking.as_caller(declaring(caller, app))
    tell_of_pages({chosen: rules}, app)
    given = GivenOptions(config, upstream or (), the_profiles(profile), revision, app, toolset)
    wait = Wait(visible=not as_json, ctrl_c="list what is there")
    ended = run_until_signal(lambda: _listed(settings, caller, wait, given), interrupt=wait.interrupt)
    if isinstance(ended, int):
        return ended
    lists, missing = ended
    if as_json:
        say_json({"profile": chosen, **lists, "missing": missing})
    else:
        _show(lists, given)
    for upstream_name, cause in missing.items():
        complain(f"upstream {upstream_name}: {cause}")
    return UNAVAILABLE if missing else DONE


async def _listed(settings: Settings, caller: Caller, wait: Wait, given: GivenOptions) -> _Listed:
    async with run_gateway(settings, expected=expected(caller, given.app)) as gateway:
        await wait.settled(gateway.upstreams.values())
        lists: dict[str, list[dict[str, Any]]] = {}
        for what, (method, _, _) in _LISTS.items():
            result = await gateway.router.respond(method, {}, caller)
            lists[what] = [dict(each) for each in objects_in(result.get(_KEYS.get(what, what)))]
        away = [each for each in gateway.upstreams.values() if each.settings.enabled and not is_there(each)]
        return lists, {each.name: why_missing(each, wait.outcomes.get(each.name), given) for each in away}


def _show(lists: Mapping[str, list[dict[str, Any]]], given: GivenOptions) -> None:
    shown = 0
    for what, (_, key, heading) in _LISTS.items():
        if listed := lists[what]:
            if shown:
                say("")
            shown += 1
            say_table((heading, "what it is"), [(plain(str(each.get(key)), _LONGEST), _about(each)) for each in listed])
    if not shown:
        remark(f"there are no resources, templates, prompts or skills: `{given.command('tools')}` lists the tools")


def _about(each: Mapping[str, Any]) -> str:
    """Return the title or name, the media type, and the first line of the description."""
    each = {**each, **as_object(each.get("frontmatter"))}  # a skill's name and description
    lines = str(each.get("description") or "").strip().splitlines()
    named = each.get("title") or (each.get("name") if "uri" in each or "uriTemplate" in each else None)
    facts = [str(fact) for fact in (named, each.get("mimeType"), lines[0] if lines else None) if fact]
    return plain("; ".join(facts), _LONGEST)
