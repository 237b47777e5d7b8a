"""Code mode as configured: the tool that hosts are offered, and its calls."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any

from gateway.config.code_mode_settings import CodeModeSettings
from gateway.content.store import ContentStore
from gateway.core.fact_words import plain
from gateway.core.model.json_values import as_object
from gateway.core.model.wire import WireObject, text_result
from gateway.core.own_names import OWN_TOOLS, RUN_TOOL
from gateway.core.profiles.profile import Profile
from gateway.core.tools.catalogue import OWN, Catalogue
from gateway.routing.code_mode.declaration import MOST_CODE, RUN, declared, signatures
from gateway.routing.code_mode.media import MediaShelf
from gateway.routing.code_mode.script_run import CallTool, ScriptRun
from gateway.routing.code_mode.script_tools import script_tools, tools_outside, with_outputs
from gateway.routing.keepalive import keeping_alive
from gateway.routing.tool_search import LONGEST_QUERY, ToolSearch
from gateway.sandbox.sandbox import Sandbox, open_sandbox
from gateway.upstream import RequestContext

_FOUND = 8
_LOOKED_AT = 50
"""Tools found that are looked through for those that scripts may call."""


@lru_cache(maxsize=512)
def whole_results(name: str) -> Profile:
    """Return a profile that changes nothing in results but finds media in their texts, under the name of a host's."""
    return Profile(name=name, rescue=True)


class CodeMode:
    """Declares `gateway_run`, and runs its scripts."""

    tool = RUN

    def __init__(self, settings: CodeModeSettings, sandbox: Sandbox, store: ContentStore) -> None:
        self._settings = settings
        self._sandbox = sandbox
        self._store = store

    def described(self, catalogue: Catalogue, profile: Profile, lists: Mapping[str, Sequence[WireObject]]) -> Catalogue:
        """Return the catalogue with the signatures of its tools in the description of `gateway_run`.

        `lists` are the raw lists of the upstreams.
        """
        catalogue = with_outputs(catalogue, lists)
        settings, tools = self._settings, script_tools(catalogue, self._settings)
        may_change = not all(tool.only_reads for tool in tools.values())
        run = declared(tools, settings.signature_tokens, profile.tools.description_max, may_change=may_change)
        words = {key: run[key] for key in ("description", "annotations")}
        offered = ({**tool, **words} if _is_run(tool, catalogue) else tool for tool in catalogue.tools)
        return replace(catalogue, tools=tuple(offered))

    async def run(
        self, arguments: object, catalogue: Catalogue, context: RequestContext, call_tool: CallTool, search: ToolSearch
    ) -> dict[str, Any]:
        """Return the raw result of a call of `gateway_run`. A script that fails is a failed result."""
        code = as_object(arguments).get("code")
        if not isinstance(code, str) or not code.strip():
            return _refused("code must be a script, in Python")
        if len(code) > MOST_CODE:
            return _refused(f"the script has {len(code):,} characters, and may have {MOST_CODE:,}")
        tools = script_tools(catalogue, self._settings)
        functions = {tool.name: tool for tool in tools.values()}
        origins = {name: catalogue.routes[name].upstream for name in functions}
        outside = tools_outside(catalogue, self._settings)
        own = OWN_TOOLS.union(name for name, route in catalogue.routes.items() if route.upstream == OWN)

        async def find(query: str) -> str:
            if len(query) > LONGEST_QUERY:
                return f"[the query has {len(query):,} characters, and may have {LONGEST_QUERY:,}]"
            names, _ = await search.best(catalogue, query, _LOOKED_AT)
            found = [functions[name] for name in names if name in functions][:_FOUND]
            others = [name for name in names if name in outside.values()][:_FOUND]
            said = signatures(found) or f"[no function has any of these words: {plain(query, 200)!r}]"
            calls = f"\n[tools that only the model calls, outside of scripts: {', '.join(others)}]" if others else ""
            return said + calls

        shelf = MediaShelf(self._store, context.caller.principal)
        script = ScriptRun(self._sandbox, self._settings, tools, origins, shelf, call_tool, find, own, outside)
        async with keeping_alive(context.on_progress, context.profile.wait.progress_every):
            return await script.result(code)


@asynccontextmanager
async def open_code_mode(settings: CodeModeSettings, store: ContentStore) -> AsyncGenerator[CodeMode]:
    """Open code mode; no process is started before the first script, and none is left at the end.

    Raises:
        ConfigError: the extra `code` is not installed.
    """
    sandbox = open_sandbox(settings)
    async with sandbox.keeping_spare():
        yield CodeMode(settings, sandbox, store)


def _is_run(tool: dict[str, Any], catalogue: Catalogue) -> bool:
    route = catalogue.routes.get(str(tool.get("name")))
    return route is not None and route.upstream == OWN and route.tool == RUN_TOOL


def _refused(words: str) -> dict[str, Any]:
    return text_result(f"[{words}]", is_error=True)
