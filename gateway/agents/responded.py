"""What comes of a completion: the messages for the history, and the results beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.core.model.envelope import Envelope
from gateway.core.model.notes import Note
from gateway.core.model_apis.completions import ToolCall
from gateway.errors import GatewayError


@dataclass(frozen=True)
class ToolResult:
    """One call and what came of it: the whole result, before it was written for the model's API.

    `error` is why there is no result of the tool itself; then the envelope holds the text that the model is told.
    """

    call: ToolCall
    envelope: Envelope
    error: GatewayError | None = None

    @property
    def structured_content(self) -> Any:
        """The result's structured content; None where it has none."""
        return self.envelope.structured_content

    @property
    def is_error(self) -> bool:
        """Whether the call failed, for the tool or before it."""
        return self.envelope.is_error


class Responded(list[Any]):
    """The messages to append to the history, as plain JSON values: the assistant's, then the results.

    `results` are the calls in the order of the assistant, `notes` what was changed for the API, and `refused` says that
    nothing was called. Where the API itself keeps the history (OpenAI's `previous_response_id`), only `after` is sent.
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
        """Why calls got no result of their tools, for loops that rather end than let the model go on."""
        return tuple(result.error for result in self.results if result.error is not None)
