"""`mcp-gateway tools`: what a host would be offered."""

from typing import Annotated, Any

import typer

from gateway.cli.failing import DONE, UNAVAILABLE, complain
from gateway.cli.started import (
    AsJson,
    ConfigFile,
    Revision,
    UpstreamUrls,
    chosen_profiles,
    run_until_signal,
    settings_for,
    with_patience,
)
from gateway.cli.terminal import say_json, say_table
from gateway.config.schema import Settings
from gateway.core.model.caller import REVISIONS, Caller
from gateway.runtime import open_gateway


def tools(
    config: ConfigFile = None,
    upstream: UpstreamUrls = None,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME", help="The host (else: gateway.profile, default).")
    ] = None,
    revision: Revision = REVISIONS[-1],
    as_json: AsJson = False,
) -> int:
    """List the tools of all upstreams, as a host would be offered them."""
    settings = settings_for(config, upstream)
    name = profile or settings.gateway.profile or "default"
    (chosen,) = chosen_profiles(settings, name, revision)
    settings, caller = with_patience(settings, chosen, revision)
    ended = run_until_signal(lambda: _listed(settings, caller))
    if isinstance(ended, int):
        return ended
    offered, missing = ended
    if as_json:
        say_json({"profile": chosen, "tools": offered, "missing": missing})
    else:
        say_table(("tool", "what it does"), [(tool["name"], _first_line(tool)) for tool in offered])
    for name, cause in missing.items():
        complain(f"upstream {name}: {cause}")
    return UNAVAILABLE if missing else DONE


async def _listed(settings: Settings, caller: Caller) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The tools, and why an upstream's are not among them."""
    async with open_gateway(settings) as router:
        listed = await router.respond("tools/list", {}, caller)
        missing: dict[str, str] = {}
        for name in router.upstreams:
            upstream = router.upstreams[name]
            state = str(upstream.state.value)
            if state not in ("ready", "disabled"):
                missing[name] = f"{state}: {upstream.cause}" if upstream.cause else state
        return listed["tools"], missing


def _first_line(tool: dict[str, Any]) -> str:
    lines = str(tool.get("description") or tool.get("title") or "").strip().splitlines()
    return lines[0] if lines else ""
