"""Tool search: in place of a long list, a host gets one tool that finds tools, and one that calls what it found.

Both are stateless, and their declarations never change, so that hosts can cache them with the prompt. A tool found is
called as if by its own name: `inner_call` is the only difference.
"""

import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from fnmatch import fnmatchcase
from threading import Lock
from typing import Any, Generic, TypeVar

import anyio
from anyio import to_thread

from gateway.config.embeddings_settings import EmbeddingsSettings
from gateway.config.tool_search_settings import ToolSearchSettings
from gateway.core.apps import for_the_model
from gateway.core.fact_words import counted, plain
from gateway.core.model.grant import SEPARATOR
from gateway.core.model.json_safe import to_json_safe
from gateway.core.model.json_shape import DEEPEST, is_deep
from gateway.core.model.json_values import as_object, is_object
from gateway.core.own_names import CALL_TOOL, FIND_TOOL
from gateway.core.profiles.profile import Profile
from gateway.core.tokens import list_tokens
from gateway.core.tools.catalogue import OWN, Catalogue
from gateway.core.tools.signatures import signature
from gateway.errors import GatewayError, InvalidRequest
from gateway.routing.log_once import Problems
from gateway.routing.tool_index import ToolIndex
from gateway.routing.tool_meanings import EmbedderPort, ToolMeanings, fused

LONGEST_QUERY = 2_000
MOST_FOUND = 50
_FOUND = 8
_KEPT = 16
"""Catalogues whose costs and indexes are kept, most recently used."""
_UPSTREAMS_NAMED = 60
_MANY = 100
"""Tools above which a list is counted in a thread, so that other hosts do not wait."""

_LONGEST_TEXT = 2_000
"""Characters of one tool that become a vector: models of embeddings read little more."""
_BACK_OFF = 30.0
"""Seconds for which a server of embeddings that has failed is not asked again: each search would wait for it."""

EmbedderFor = Callable[[EmbeddingsSettings], EmbedderPort]

_ANNOTATIONS = {"openWorldHint": True, "idempotentHint": False}

FIND: dict[str, Any] = {
    "name": FIND_TOOL,
    "title": "Find tools",
    "description": (
        "Finds tools by what they do: most tools here are not in your list. Give a few words, such as 'create issue' "
        "or 'take screenshot'. The answer has their signatures: name, parameters with types (? marks optional ones), "
        f"and what each does. Call one with {CALL_TOOL}."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Words that say what the tool should do."},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MOST_FOUND,
                "description": f"Most tools to answer with; {_FOUND} if omitted.",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    "annotations": {
        "title": "Find tools",
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    },
}

CALL: dict[str, Any] = {
    "name": CALL_TOOL,
    "title": "Call a tool",
    "description": (
        f"Calls a tool that {FIND_TOOL} has found, and answers as that tool does. Give its name and its arguments as "
        "the signature says."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": f"The tool's name, exactly as {FIND_TOOL} gives it."},
            "arguments": {"type": "object", "description": "The tool's arguments."},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    "annotations": {"title": "Call a tool", "readOnlyHint": False, "destructiveHint": True, **_ANNOTATIONS},
}

SEARCH_TOOLS = (FIND, CALL)
_NAMES = frozenset({FIND_TOOL, CALL_TOOL})

Value = TypeVar("Value")


def query_problem(query: str) -> str | None:
    """Return what is wrong with a query, if anything."""
    if not query.strip():
        return "query must say in a few words what the tool should do"
    if len(query) > LONGEST_QUERY:
        return f"the query has {len(query):,} characters, and may have {LONGEST_QUERY:,}: a few words are enough"
    return None


class ToolSearch:
    """Decides what a host's list has, and finds tools in its catalogue."""

    def __init__(self, settings: ToolSearchSettings, embedder_for: EmbedderFor | None = None) -> None:
        """`embedder_for`: makes the client of the embeddings server; without it, words alone count."""
        self._embedder_for = embedder_for
        self._problems = Problems()
        self._costs = _ByCatalogue(_cost)
        self._indexes = _ByCatalogue(lambda catalogue: ToolIndex(catalogue, _findable(catalogue)))
        self._meanings: ToolMeanings | None = None
        self._settings = ToolSearchSettings()
        self.reconfigure(settings)

    def reconfigure(self, settings: ToolSearchSettings) -> None:
        """Apply changed settings."""
        before, now = self._settings.embeddings, settings.embeddings
        self._settings = settings
        if now == before:
            return
        self._not_before = 0.0
        embedder = self._embedder_for(now) if now and self._embedder_for else None
        if embedder is None:
            self._meanings = None
        elif self._meanings is not None and before and now and (now.url, now.model) == (before.url, before.model):
            self._meanings.embedder = embedder  # the vectors that there are can still be used
        else:
            self._meanings = ToolMeanings(embedder)

    def may_search(self, profile: Profile) -> bool:
        """Whether hosts of this profile may have to search their tools."""
        return self._mode(profile) != "never"

    async def listed(self, catalogue: Catalogue, profile: Profile) -> list[dict[str, Any]]:
        """Return the tools of a host's list: all, or those that stay listed with the two that lead to the others."""
        if not self.may_search(profile):
            return list(catalogue.tools)
        if len(catalogue.tools) > _MANY:
            await to_thread.run_sync(self._costs.of, catalogue)
        if not self._searches(catalogue, profile):
            return self.unsearched(catalogue)
        return [tool for tool in catalogue.tools if self._stays(catalogue, tool)]

    @staticmethod
    def unsearched(catalogue: Catalogue) -> list[dict[str, Any]]:
        """Return all tools but the two for searching."""
        return [tool for tool in catalogue.tools if tool["name"] not in _NAMES]

    def inner_call(self, params: Mapping[str, Any], profile: Profile) -> Mapping[str, Any]:
        """Return the params of the call that a call of `gateway_call_tool` stands for; any others as they are.

        Raises:
            InvalidRequest: it names no tool, or its arguments are not an object.
        """
        if params.get("name") != CALL_TOOL or not self.may_search(profile):
            return params
        given = as_object(params.get("arguments"))
        name, arguments = given.get("name"), given.get("arguments")
        if not isinstance(name, str) or not name or name == CALL_TOOL:
            raise InvalidRequest(f"{CALL_TOOL} needs the name of a tool", remedy=f"{FIND_TOOL} gives the names")
        if isinstance(arguments, str):  # some models write JSON in JSON
            arguments = _parsed(arguments)
        if arguments is not None and not is_object(arguments):
            raise InvalidRequest(f"the arguments for {plain(name, 200)} must be an object")
        return {**params, "name": name, "arguments": arguments or {}}

    async def find(self, arguments: object, catalogue: Catalogue) -> dict[str, Any]:
        """Return the result of `gateway_find_tools` for a host with this catalogue. A bad query is a failed result."""
        given = as_object(arguments)
        query, limit = given.get("query"), given.get("limit", _FOUND)
        if not isinstance(query, str):
            query = ""
        if (problem := query_problem(query)) is not None:
            return _text(problem, is_error=True)
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            return _text(f"limit must be a whole number from 1 to {MOST_FOUND}", is_error=True)
        names, count = await self.best(catalogue, query, min(limit, MOST_FOUND))
        return _text(self._found(query, names, count, catalogue), is_error=False, framed=False)

    async def best(self, catalogue: Catalogue, query: str, most: int) -> tuple[list[str], int]:
        """Return the names of the best tools for a query, and how many were found."""
        by_words, count = await to_thread.run_sync(self.by_words, catalogue, query, MOST_FOUND)
        by_meaning = await self._by_meaning(catalogue, query)
        if not by_meaning:
            return by_words[:most], count
        names = fused(by_words, by_meaning)
        return names[:most], max(count, len(names))

    def by_words(self, catalogue: Catalogue, query: str, most: int) -> tuple[list[str], int]:
        """Return the names of the tools that have words of the query, best first, and how many have any."""
        return self._indexes.of(catalogue).best(query, most)

    async def _by_meaning(self, catalogue: Catalogue, query: str) -> list[str]:
        """Return the names of the tools that are nearest to the query; none if no embeddings are to be had."""
        if self._meanings is None or anyio.current_time() < self._not_before:
            return []
        tools = {str(tool["name"]): tool for tool in catalogue.tools}
        texts = {name: signature(tools[name])[:_LONGEST_TEXT] for name in _findable(catalogue)}
        try:
            return await self._meanings.best(texts, query, MOST_FOUND)
        except GatewayError as error:
            self._not_before = anyio.current_time() + _BACK_OFF
            self._problems.report([str(error)], "tools are found by their words alone")
            return []

    def _found(self, query: str, names: list[str], count: int, catalogue: Catalogue) -> str:
        if not names:
            return f"[no tool has any of these words: {plain(query, 200)!r}; {_overview(catalogue)}]"
        tools = {tool["name"]: tool for tool in catalogue.tools}
        shown = f"the best {len(names)} of {count:,}" if count > len(names) else counted(count, "tool")
        return "\n".join((f"[{shown}, best first; call one with {CALL_TOOL}]", *(signature(tools[n]) for n in names)))

    def _mode(self, profile: Profile) -> str:
        return profile.tools.search or self._settings.mode

    def _searches(self, catalogue: Catalogue, profile: Profile) -> bool:
        if self._mode(profile) == "always":
            return True
        most = profile.tools.max_tools
        return (most is not None and len(catalogue.tools) - len(_NAMES) > most) or self._costs.of(
            catalogue
        ) > self._settings.above

    def _stays(self, catalogue: Catalogue, tool: Mapping[str, Any]) -> bool:
        route = catalogue.routes.get(str(tool.get("name")))
        if route is None or route.upstream == OWN or not for_the_model(tool):
            return True
        own_name = f"{route.upstream}{SEPARATOR}{route.tool}"
        return any(fnmatchcase(own_name, pattern) for pattern in self._settings.pinned)


class _ByCatalogue(Generic[Value]):
    """A value made of each catalogue, and kept for as long as that is in use. May be used in any thread."""

    def __init__(self, make: Callable[[Catalogue], Value]) -> None:
        self._make = make
        self._kept: OrderedDict[int, tuple[Catalogue, Future[Value]]] = OrderedDict()
        self._lock = Lock()

    def of(self, catalogue: Catalogue) -> Value:
        """Return the value; wait for it if another thread is making it, but never for that of another catalogue."""
        # Keyed by identity: the catalogue is kept beside the value, so no other can get the same id.
        with self._lock:
            is_new = id(catalogue) not in self._kept
            value = self._kept.setdefault(id(catalogue), (catalogue, Future()))[1]
            self._kept.move_to_end(id(catalogue))
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        if is_new:
            try:
                value.set_result(self._make(catalogue))
            except BaseException as error:
                value.set_exception(error)
                with self._lock:
                    self._kept.pop(id(catalogue), None)
        return value.result()


def _parsed(text: str) -> Any:
    """Return the value of JSON text, as safe to pass on as the params that it came in; other text as it is."""
    if not text.strip():
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if is_deep(value):
        raise InvalidRequest(f"arguments may not nest deeper than {DEEPEST} levels")
    return to_json_safe(value)


def _cost(catalogue: Catalogue) -> int:
    """The tokens of the list without the two tools for searching."""
    return list_tokens(tool for tool in catalogue.tools if tool["name"] not in _NAMES and for_the_model(tool))


def _findable(catalogue: Catalogue) -> list[str]:
    """The tools that can be found: those of upstreams, for the model."""
    routes, names = catalogue.routes, (str(tool["name"]) for tool in catalogue.tools if for_the_model(tool))
    for_pages = catalogue.listed_for_pages
    return [name for name in names if name in routes and name not in for_pages and routes[name].upstream != OWN]


def _overview(catalogue: Catalogue) -> str:
    counts = Counter(catalogue.routes[name].upstream for name in _findable(catalogue))
    named = ", ".join(f"{upstream} ({count})" for upstream, count in list(counts.items())[:_UPSTREAMS_NAMED])
    return f"there are tools of: {named}" if named else "there are no tools"


def _text(words: str, *, is_error: bool, framed: bool = True) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": f"[{words}]" if framed else words}], "isError": is_error}
