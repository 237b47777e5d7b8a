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
            content += [part(Words(follow_up.caption)), part(follow_up.media)]
        items.append({"type": "message", "role": "user", "content": content})
    return items


def _output(answer: Answer) -> dict[str, Any]:
    output: str | list[dict[str, Any]] = answer.text
    if answer.raw is not None:
        output = answer.raw
    elif answer.media:
        output = [part(one) for one in answer.parts]
    return {"type": "function_call_output", "call_id": answer.call.id, "output": output}


def part(one: Part) -> dict[str, Any]:
    """One part: `input_text`, `input_image` or `input_file`, the latter two also by file id or address."""
    if isinstance(one, Words):
        return {"type": "input_text", "text": one.text}
    if one.kind == "image":
        source = {"file_id": one.file_id} if one.file_id else {"image_url": one.url}
        return {"type": "input_image", **source, "detail": one.detail or "auto"}
    if one.ref:
        return {"type": "input_file", "file_id" if one.file_id else "file_url": one.ref.value}
    return {"type": "input_file", "filename": _file_name(one), "file_data": one.url}


def _file_name(media: Media) -> str:
    return media.title or f"{media.label.replace(' ', '-')}.pdf"
