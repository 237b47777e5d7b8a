"""How a tool or a prompt of the upstream asks its host for input, written once for both eras."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

Question = types.ElicitRequest | types.CreateMessageRequest | types.ListRootsRequest
Answer = types.ElicitResult | types.CreateMessageResult | types.ListRootsResult

KINDS: dict[type[Question], tuple[str, type[Answer]]] = {
    types.ElicitRequest: ("elicitation", types.ElicitResult),
    types.CreateMessageRequest: ("sampling", types.CreateMessageResult),
    types.ListRootsRequest: ("roots", types.ListRootsResult),
}
"""For each kind of question the capability that a host must have declared, and the shape of its answer."""


class Failed(Exception):
    """The tool failed: the host gets a result with `isError`."""


class InputNeeded(Exception):
    """The call cannot end before the host has answered: it gets this result, and calls again."""

    def __init__(self, result: types.InputRequiredResult) -> None:
        super().__init__("input required")
        self.result = result


@dataclass(frozen=True)
class Call:
    """One request as a tool or a prompt sees it."""

    context: ServerRequestContext[Any, Any]
    arguments: Mapping[str, Any]
    input_responses: Mapping[str, Answer]
    request_state: str | None

    @property
    def modern(self) -> bool:
        return self.context.protocol_version in MODERN_PROTOCOL_VERSIONS

    def declared(self, capability: str) -> bool:
        return getattr(self.context.session.client_capabilities, capability, None) is not None

    def require(self, *capabilities: str) -> None:
        """Refuse the call, in the words of its era, where the host has not declared one of these."""
        lacking: dict[str, Any] = {name: {} for name in capabilities if not self.declared(name)}
        if not lacking:
            return
        message = f"the client has not declared {', '.join(lacking)}"
        if not self.modern:
            raise Failed(message)
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, message, {"requiredCapabilities": lacking})

    async def ask(self, questions: Mapping[str, Question], *, with_state: bool = False) -> dict[str, Answer]:
        """The answers, by the questions' keys.

        To a host of a handshake revision each question is a request of its own. A host of 2026-07-28 gets them all as
        the result of its call, and the tool runs again from its start when the answers are there: those of earlier
        rounds stand in the (sealed) request state, which is also sent without any of them if it is `with_state`.
        """
        self.require(*(KINDS[type(question)][0] for question in questions.values()))
        if not self.modern:
            return {key: await self._send(question) for key, question in questions.items()}
        if questions.keys() <= self._answers.keys():
            return {key: self._answers[key] for key in questions}
        answered = {key: answer.model_dump(by_alias=True, mode="json") for key, answer in self._answers.items()}
        state = json.dumps(answered) if answered or with_state else None
        raise InputNeeded(types.InputRequiredResult(input_requests=dict(questions), request_state=state))

    async def _send(self, question: Question) -> Answer:
        where = ServerMessageMetadata(related_request_id=self.context.request_id)
        return await self.context.session.send_request(question, KINDS[type(question)][1], metadata=where)

    @cached_property
    def _answers(self) -> dict[str, Answer]:
        return {**self._remembered, **self.input_responses}

    @cached_property
    def _remembered(self) -> dict[str, Answer]:
        return {key: _read(answer) for key, answer in json.loads(self.request_state or "{}").items()}


def _read(answer: Mapping[str, Any]) -> Answer:
    shape = next(shape for field, shape in _SHAPES.items() if field in answer)
    return shape.model_validate(answer)


_SHAPES: dict[str, type[Answer]] = {
    "action": types.ElicitResult,
    "model": types.CreateMessageResult,
    "roots": types.ListRootsResult,
}


def form(message: str, properties: Mapping[str, Any], *, required: bool = True) -> types.ElicitRequest:
    """Ask the user to fill in a form."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = list(properties)
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(text: str, max_tokens: int = 100) -> types.CreateMessageRequest:
    """Ask the host's model."""
    said = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[said], max_tokens=max_tokens))


def field(answer: Answer, name: str) -> Any:
    """What the user wrote into a field of the form; None where nothing came."""
    return (answer.content or {}).get(name) if isinstance(answer, types.ElicitResult) else None
