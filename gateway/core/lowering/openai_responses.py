"""Lowering to OpenAI Responses: `function_call_output` items, which hold text, images and files themselves.

https://platform.openai.com/docs/api-reference/responses/create (function_call_output.output: a string, or a list of
input_text, input_image and input_file; there is no sound in it).
"""

from typing import Any

from gateway.core.model.turn import Answer, Media, Part, Turn, Words


def write(turn: Turn) -> list[dict[str, Any]]:
    """The input items after the model's calls: one `function_call_output` for each, then at most one user message."""
    items = [_output(answer) for answer in turn.answers]
    if turn.follow_ups:
        content: list[dict[str, Any]] = []
        for follow_up in turn.follow_ups:
            content += [_part(Words(follow_up.caption)), _part(follow_up.media)]
        items.append({"type": "message", "role": "user", "content": content})
    return items


def _output(answer: Answer) -> dict[str, Any]:
    output: str | list[dict[str, Any]] = answer.text
    if answer.media:
        output = [_part(part) for part in answer.parts]
    return {"type": "function_call_output", "call_id": answer.call.id, "output": output}


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Words):
        return {"type": "input_text", "text": part.text}
    if part.kind == "image":
        return {"type": "input_image", "image_url": part.data_uri, "detail": "auto"}
    return {"type": "input_file", "filename": _file_name(part), "file_data": part.data_uri}


def _file_name(media: Media) -> str:
    return media.title or f"{media.label.replace(' ', '-')}.pdf"
