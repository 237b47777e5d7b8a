"""The stand-ins over HTTP: every API has its own paths, errors and streaming, like the real ones."""

import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from gateway.core.model.json_values import is_dict
from gateway.testing.model_apis import conversation, refusals
from gateway.testing.model_apis.chat_templates import ALTERNATION
from gateway.testing.model_apis.replies.anthropic_messages import ANTHROPIC_MESSAGES
from gateway.testing.model_apis.replies.gemini import GEMINI, GEMINI_INTERACTIONS
from gateway.testing.model_apis.replies.openai_chat import GROQ, MISTRAL, OPENAI_CHAT
from gateway.testing.model_apis.replies.openai_responses import OPENAI_RESPONSES
from gateway.testing.model_apis.replies.others import BEDROCK_CONVERSE, COHERE, OLLAMA
from gateway.testing.model_apis.replies.write_reply import Asked, Writer
from gateway.testing.model_apis.scripts import LookingModel, Reply, Script, Scripted, ToolCall

__all__ = [
    "OPENAI_CHAT",
    "WRITERS",
    "LookingModel",
    "ModelServer",
    "Recorded",
    "Reply",
    "Script",
    "Scripted",
    "ToolCall",
    "listen",
    "model_server",
]

Pause = Callable[[], Awaitable[object]]

WRITERS: Mapping[str, Writer] = {
    "openai_responses": OPENAI_RESPONSES,
    "anthropic_messages": ANTHROPIC_MESSAGES,
    "gemini": GEMINI,
    "gemini_2_5": GEMINI,
    "gemini_interactions": GEMINI_INTERACTIONS,
    "bedrock_converse": BEDROCK_CONVERSE,
    "cohere": COHERE,
    "ollama": OLLAMA,
    "mistral": MISTRAL,
    "groq": GROQ,
}
"""The writers of replies by API. A profile of Chat Completions uses that API's writer."""


@dataclass(frozen=True)
class Recorded:
    """A recorded request, with lower-case header names and the raw body."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The parsed body. Raises ValueError if it is not JSON."""
        return json.loads(self.body)


OnRequest = Callable[[Recorded], object]
"""Called with each request, before it is answered."""


class ModelServer(Starlette):
    """The application. `requests` has all requests received, in order."""

    def __init__(
        self, script: Script, chat: str, record: list[Recorded], pause: Pause | None, on_request: OnRequest
    ) -> None:
        self.requests = record
        self._on_request = on_request
        self._script = script
        self._pause = pause
        self._numbers = count(1)
        fixed = {
            "/v1/chat/completions": chat,
            "/openai/v1/chat/completions": "groq",  # as its client sends it
            "/v1/responses": "openai_responses",
            "/v1/messages": "anthropic_messages",
            "/v1/interactions": "gemini_interactions",
            "/v1beta/interactions": "gemini_interactions",
            "/v2/chat": "cohere",
            "/api/chat": "ollama",
            "/model/{model}/converse": "bedrock_converse",
            "/v1beta/models/{model}:{method}": "gemini",
            "/v1/models/{model}:{method}": "gemini",
        }
        routes = [Route(path, self._endpoint(api), methods=["POST"]) for path, api in fixed.items()]
        super().__init__(routes=routes)

    def _endpoint(self, api: str) -> Callable[[Request], Awaitable[Response]]:
        writer = WRITERS.get(api, OPENAI_CHAT)

        async def answer(request: Request) -> Response:
            recorded = Recorded(request.method, request.url.path, dict(request.headers), await request.body())
            self.requests.append(recorded)
            self._on_request(recorded)
            body = _body(recorded, request.path_params)
            if isinstance(body, str):
                return _refused(writer, body)
            method = request.path_params.get("method", "")
            if method not in ("", "generateContent", "streamGenerateContent"):
                return JSONResponse({"error": {"code": 404, "message": method, "status": "NOT_FOUND"}}, 404)
            if faults := refusals(api, body):
                return _refused(writer, "; ".join(faults), 500 if faults == (ALTERNATION,) else 400)
            return self._reply(api, writer, body, method, request.query_params.get("alt"))

        return answer

    def _reply(self, api: str, writer: Writer, body: Mapping[str, Any], method: str, alt: str | None) -> Response:
        read = conversation(api, body)
        assert read is not None, "a request that is not refused can be read"
        number = next(self._numbers)
        reply = _with_ids(self._script(read), number)
        asked = Asked(number, read.model, body)
        # Ollama streams by default.
        wanted = method == "streamGenerateContent" or body.get("stream", api == "ollama")
        if not wanted:
            return JSONResponse(writer.whole(reply, asked))
        if writer.events is None:
            return _refused(writer, "this stand-in does not stream")
        if method and alt != "sse":
            # Without alt=sse the stream is a single array of the same chunks.
            return JSONResponse([writer.whole(reply, asked)])
        return StreamingResponse(self._paced(writer.events(reply, asked)), media_type=writer.media_type)

    async def _paced(self, events: Iterator[str]) -> AsyncIterator[str]:
        for event in events:
            yield event
            if self._pause:
                await self._pause()


def model_server(
    script: Script | None = None,
    *,
    chat: str = "openai_chat",
    record: list[Recorded] | None = None,
    pause: Pause | None = None,
    on_request: OnRequest = lambda _: None,
) -> ModelServer:
    """Return a server that answers like all the model APIs, by `script` (default: `LookingModel()`).

    `chat` is the target for /v1/chat/completions: `openai_chat`, a profile of it (`vllm`, `llama_cpp` ...),
    `mistral` or `groq`. Requests are kept in `record`, or in the server's own `requests`, and `on_request` is
    called with each. `pause` is awaited after each event of a stream, for tests of intermediate states. A request
    that the real API would refuse gets its error with status 400; one that a chat template refuses in llama-server
    gets 500, as there.
    """
    return ModelServer(script or LookingModel(), chat, [] if record is None else record, pause, on_request)


def _body(recorded: Recorded, parameters: Mapping[str, str]) -> dict[str, Any] | str:
    """Return the body as an object, with the model named by the URL, or a message about what is wrong with it."""
    try:
        body = recorded.json
    except ValueError as error:
        return f"the body is not JSON: {error}"
    if not is_dict(body):
        return "the body is not a JSON object"
    named = {"model": parameters["model"]} if "model" in parameters else {}
    return {**body, **named}


def _refused(writer: Writer, why: str, status: int = 400) -> Response:
    return JSONResponse(writer.refusal(why), status)


def _with_ids(reply: Reply, number: int) -> Reply:
    """Give every call an id of nine letters and digits, which every API accepts."""
    calls = (replace(call, id=call.id or f"c{number:05d}{place:03d}") for place, call in enumerate(reply.calls))
    return replace(reply, calls=tuple(calls))


def listen(port: int = 0) -> socket.socket:
    """Listen on a socket declared as TCP, for otherwise asyncio does not set TCP_NODELAY, which delays answers."""
    listener = socket.create_server(("127.0.0.1", port))
    return socket.socket(listener.family, listener.type, socket.IPPROTO_TCP, fileno=listener.detach())
