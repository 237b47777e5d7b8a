"""Hosts' ends of the protocol, in every revision: what each does when an answer does not come."""

import asyncio
import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import httpx2

from gateway.core.model.json_values import as_object

META: Final = "io.modelcontextprotocol/"
STATELESS: Final = "2026-07-28"
RESUMES: Final = "2025-11-25"
STREAMS: Final = "2024-11-05"
REVISIONS: Final = (STREAMS, "2025-03-26", "2025-06-18", RESUMES, STATELESS)
ASKS: Final = frozenset({"2025-06-18", RESUMES, STATELESS})
"""The revisions in which hosts can be asked something."""
_TRIES: Final = 60
_REFUSED_SECONDS: Final = 0.5

Message = Mapping[str, Any]
Answering = Callable[[Message], Awaitable[None]]


class CutOff(Exception):
    """The connection broke before the whole answer had come."""


class NotTaken(Exception):
    """There is no such stream (any more), so nothing was carried out."""


class Told(Exception):
    """The answer is an error, which says why."""


class Client(ABC):
    """One host, at one entrance. `on_retry` is told why something is asked for again."""

    def __init__(self, http: httpx2.AsyncClient, url: str, token: str, name: str, revision: str) -> None:
        self.revision = revision
        self.on_retry: Callable[[str], object] = lambda why: None
        self.on_reopened: Callable[[], object] = lambda: None
        self._http = http
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
        self._client = {"name": name, "version": "1"}
        self._numbers = itertools.count(1)

    @property
    def capabilities(self) -> Message:
        """What the host can do."""
        return {"elicitation": {}} if self.revision in ASKS else {}

    @abstractmethod
    async def open(self) -> None:
        """Be ready to ask."""

    @abstractmethod
    async def ask(self, method: str, params: Message, capabilities: Message | None = None) -> Message:
        """Return the result.

        Raises:
            Told: it is an error.
            CutOff: it did not come.
        """

    @abstractmethod
    async def close(self) -> None:
        """Leave."""

    def _message(self, method: str, params: Message) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": f"r{next(self._numbers)}", "method": method, "params": params}

    def _initialize(self) -> dict[str, Any]:
        about = {"protocolVersion": self.revision, "capabilities": self.capabilities, "clientInfo": self._client}
        return self._message("initialize", about)

    async def _post(self, url: str, message: Message, headers: Mapping[str, str]) -> httpx2.Response:
        """Send a message until it is taken, and return the response, which is to be closed."""
        for _ in range(_TRIES):
            request = self._http.build_request("POST", url, json=message, headers=headers)
            try:
                response = await self._http.send(request, stream=True)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                self.on_retry("nothing listens")
                await asyncio.sleep(_REFUSED_SECONDS)
                continue
            except httpx2.TransportError as error:
                raise CutOff(f"{type(error).__name__} before the answer") from error
            if response.status_code not in (429, 503):
                return response
            self.on_retry(f"{response.status_code}: {await _words(response)}")
            await response.aclose()
            await asyncio.sleep(float(response.headers.get("retry-after", 1)))
        raise Told("refused again and again")


class StatelessClient(Client):
    """A host of 2026-07-28. A call whose connection breaks is for whoever made it to repeat."""

    async def open(self) -> None:
        await self.ask("tools/list", {})

    async def ask(self, method: str, params: Message, capabilities: Message | None = None) -> Message:
        about = {"protocolVersion": STATELESS, "clientInfo": self._client}
        about["clientCapabilities"] = dict(self.capabilities if capabilities is None else capabilities)
        meta = {f"{META}{key}": value for key, value in about.items()}
        headers = {**self._headers, "MCP-Protocol-Version": STATELESS, "Mcp-Method": method}
        if (name := params.get("name") or params.get("uri") or params.get("taskId")) is not None:
            headers["Mcp-Name"] = str(name)
        response = await self._post(self._url, self._message(method, {**params, "_meta": meta}), headers)
        try:
            return _result(await _answer(response, _nobody_asks))
        finally:
            await response.aclose()

    async def close(self) -> None:
        return


class SessionClient(Client):
    """A host with a session (2025-03-26 to 2025-11-25). The newest resumes streams that break."""

    def __init__(self, http: httpx2.AsyncClient, url: str, token: str, name: str, revision: str) -> None:
        super().__init__(http, url, token, name, revision)
        self._session: dict[str, str] = {}
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        await self._reopened({})

    async def ask(self, method: str, params: Message, capabilities: Message | None = None) -> Message:
        message = self._message(method, params)
        for _ in range(_TRIES):
            session = self._session
            response = await self._post(self._url, message, {**self._headers, **session})
            try:
                if response.status_code == 404:  # nothing was carried out: the session is to be opened again
                    self.on_retry(f"404: {await _words(response)}")
                    await self._reopened(session)
                    continue
                return _result(await self._answered(response, message))
            finally:
                await response.aclose()
        raise Told("no session lasts")

    async def close(self) -> None:
        if self._session:
            with suppress(httpx2.TransportError):
                await self._http.delete(self._url, headers={**self._headers, **self._session})

    async def _reopened(self, session: dict[str, str]) -> None:
        async with self._opening:
            if self._session is not session and self._session:  # another call has opened it
                return
            if session:
                self.on_reopened()
            response = await self._post(self._url, self._initialize(), self._headers)
            try:
                _result(await _answer(response, _nobody_asks))
                headers = {"Mcp-Session-Id": response.headers["mcp-session-id"], "MCP-Protocol-Version": self.revision}
            finally:
                await response.aclose()
            self._session = headers
            await self._tell({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def _tell(self, message: Message) -> None:
        response = await self._post(self._url, message, {**self._headers, **self._session})
        await response.aclose()

    async def _say(self, question: Message) -> None:
        content = {"action": "accept", "content": {"answer": "yes"}}
        await self._tell({"jsonrpc": "2.0", "id": question["id"], "result": content})

    async def _answered(self, response: httpx2.Response, message: Message) -> Message:
        seen: list[str] = []
        try:
            return await _answer(response, self._say, seen)
        except CutOff:
            if self.revision != RESUMES or not seen:
                raise
        return await self._resumed(seen)

    async def _resumed(self, seen: list[str]) -> Message:
        """Get the rest of a stream that broke, by the id of its last event."""
        for _ in range(_TRIES):
            headers = {**self._headers, **self._session, "Last-Event-ID": seen[-1]}
            request = self._http.build_request("GET", self._url, headers=headers)
            self.on_retry("the stream is resumed")
            try:
                response = await self._http.send(request, stream=True)
            except httpx2.TransportError:
                await asyncio.sleep(_REFUSED_SECONDS)
                continue
            try:
                if response.status_code in (429, 502, 503):
                    await asyncio.sleep(float(response.headers.get("retry-after", 1)))
                    continue
                if response.status_code != 200:
                    raise Told(f"{response.status_code}: {await _words(response)}")
                return await _answer(response, self._say, seen)
            except CutOff:
                await asyncio.sleep(_REFUSED_SECONDS)
            finally:
                await response.aclose()
        raise CutOff("the stream does not go on")


class StreamClient(Client):
    """A host of 2024-11-05: one stream of events, opened again when it ends, and messages that are posted beside it."""

    def __init__(self, http: httpx2.AsyncClient, url: str, token: str, name: str) -> None:
        super().__init__(http, url, token, name, STREAMS)
        self._origin = url.removesuffix("/mcp")
        self._place: str | None = None
        self._waiting: dict[str, asyncio.Future[Message]] = {}
        self._reading: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        async with self._opening:
            for _ in range(_TRIES):
                if self._place is not None:
                    return
                try:
                    await self._opened()
                except (CutOff, NotTaken, Told, httpx2.TransportError) as error:
                    self.on_retry(f"no stream: {error}")
                    await asyncio.sleep(1)
            raise Told("no stream lasts")

    async def ask(self, method: str, params: Message, capabilities: Message | None = None) -> Message:
        for _ in range(_TRIES):
            await self.open()
            assert self._place is not None
            try:
                return await self._asked(self._message(method, params), self._place)
            except NotTaken as gone:  # it was not taken
                self.on_retry(str(gone))
                self._end(CutOff("the stream is gone"))
        raise Told("no stream lasts")

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    async def _opened(self) -> None:
        loop = asyncio.get_running_loop()
        place: asyncio.Future[str] = loop.create_future()
        if self._reading is not None:
            self.on_reopened()
        self._reading = loop.create_task(self._read(place))
        async with asyncio.timeout(20):
            found = await place
            await self._asked(self._initialize(), found)
            await self._sent({"jsonrpc": "2.0", "method": "notifications/initialized"}, found)
        if not self._reading.done():
            self._place = found

    async def _asked(self, message: dict[str, Any], place: str) -> Message:
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[message["id"]] = answer
        try:
            await self._sent(message, place)
            return _result(await answer)
        finally:
            self._waiting.pop(message["id"], None)
            answer.cancel()

    async def _sent(self, message: Message, place: str) -> None:
        """Post a message. Raises NotTaken."""
        response = await self._post(self._origin + place, message, self._headers)
        try:
            if response.status_code == 404:
                raise NotTaken(f"404: {await _words(response)}")
            if response.status_code >= 400:
                raise Told(f"{response.status_code}: {await _words(response)}")
        finally:
            await response.aclose()

    async def _read(self, place: asyncio.Future[str]) -> None:
        error = CutOff("the stream has ended")
        try:
            async with self._http.stream("GET", f"{self._origin}/sse", headers=self._headers) as response:
                if response.status_code != 200:
                    error = CutOff(f"{response.status_code}: {await _words(response)}")
                    return
                async for name, data, _ in _events(response):
                    if name == "endpoint" and not place.done():
                        place.set_result(data)
                    elif data:
                        message = json.loads(data)
                        waiting = self._waiting.get(str(message.get("id")))
                        if waiting is not None and not waiting.done():
                            waiting.set_result(message)
        except httpx2.TransportError as broken:
            error = CutOff(f"the stream broke: {type(broken).__name__}")
        finally:
            if not place.done():
                place.set_exception(error)
            self._end(error)

    def _end(self, error: CutOff) -> None:
        self._place = None
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(error)


async def _nobody_asks(message: Message) -> None:
    raise Told(f"asked {message.get('method')} where nobody can be asked")


async def _answer(response: httpx2.Response, asked: Answering, seen: list[str] | None = None) -> Message:
    """Return the answer in a response; questions before it go to `asked`, ids of events into `seen`."""
    try:
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            text = await _words(response)
            message = as_object(_json(text))
            if "result" in message or "error" in message:
                return message
            raise Told(f"{response.status_code}: {text}")
        async for _, data, name in _events(response):
            if name and seen is not None:
                seen.append(name)
            message = as_object(_json(data))
            if "result" in message or "error" in message:
                return message
            if "id" in message:
                await asked(message)
    except httpx2.TransportError as error:
        raise CutOff(f"{type(error).__name__} within the answer") from error
    raise CutOff("the stream ended before the answer")


async def _events(response: httpx2.Response) -> AsyncIterator[tuple[str, str, str]]:
    """Yield name, data and id of each event."""
    event = {"event": "", "data": "", "id": ""}
    async for line in response.aiter_lines():
        field, _, value = line.partition(":")
        if field in event:
            event[field] = value.removeprefix(" ")
        elif not line:
            yield event["event"], event["data"], event["id"]
            event = {"event": "", "data": "", "id": ""}


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


async def _words(response: httpx2.Response) -> str:
    try:
        return (await response.aread()).decode("utf-8", "replace")
    except httpx2.TransportError as error:
        raise CutOff(f"{type(error).__name__} within the answer") from error


def _result(message: Message) -> Message:
    if "error" in message:
        raise Told(str(message["error"].get("message", "")))
    return message["result"]


def texts(result: Message) -> str:
    """Return all that a model reads of a result."""
    blocks: Sequence[Message] = result.get("content") or ()
    return "\n".join(str(block.get("text", "")) for block in blocks)


def client(http: httpx2.AsyncClient, url: str, token: str, name: str, revision: str) -> Client:
    """Return a host of a revision."""
    if revision == STATELESS:
        return StatelessClient(http, url, token, name, revision)
    if revision == STREAMS:
        return StreamClient(http, url, token, name)
    return SessionClient(http, url, token, name, revision)
