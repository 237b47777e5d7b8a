"""The response to a completion: messages for the history, and the results of the calls."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.core.model.envelope import Envelope
from gateway.core.model.notes import Note
from gateway.core.model_apis.completions import ToolCall
from gateway.errors import GatewayError


@dataclass(frozen=True)
class ToolResult:
    """One call and its whole result, before it was written for the model's API.

    `error` is the reason why there is no result of the tool itself; then the envelope has the text for the model.
    """

    call: ToolCall
    envelope: Envelope
    error: GatewayError | None = None

    @property
    def structured_content(self) -> Any:
        """The result's structured content, or None."""
        return self.envelope.structured_content

    @property
    def is_error(self) -> bool:
        """Whether the call failed, in the tool or before it was called."""
        return self.envelope.is_error


class Responded(list[Any]):
    """The messages to append to the history, as plain JSON values: the assistant's, then the results.

    `results` are the calls in the assistant's order, `notes` are the changes made for the API, and `refused` is true if
    nothing was called. If the API itself keeps the history (OpenAI's `previous_response_id`), send only `after`.
    """

    def __init__(
        self,
        assistant: Sequence[Any],
        after: Sequence[Any] = (),
        results: Sequence[ToolResult] = (),
        notes: Sequence[Note] = (),
        *,
        refused: bool = False,
    ) -> None:
        super().__init__([*assistant, *after])
        self.after = list(after)
        self.results = tuple(results)
        self.notes = tuple(notes)
        self.refused = refused

    @property
    def errors(self) -> tuple[GatewayError, ...]:
        """The errors of calls without a result of their tool, for loops that end on these instead of going on."""
        return tuple(result.error for result in self.results if result.error is not None)
