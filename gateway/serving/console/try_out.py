"""Try: any tool, prompt or resource with a form, as a chosen profile is offered it, and what came of it.

Whatever is tried goes the way of every host's request, as the operator's own: rules, limits and the audit trail apply.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import anyio
from starlette.requests import Request

from gateway.content.fetch import clean_name, peeked, typed
from gateway.content.shaping.shaper import lift_within
from gateway.core.model.caller import CONSOLE_CLIENT
from gateway.core.model.json_values import as_list, as_object, objects_in
from gateway.core.model.wire import WireObject
from gateway.core.profiles.profile_words import drawn_elsewhere
from gateway.errors import ContentTooLarge, InvalidRequest
from gateway.serving.console import offers
from gateway.serving.console.call_arguments import repeatable_arguments
from gateway.serving.console.calls import embedded_pages, page_uri
from gateway.serving.console.console import Console
from gateway.serving.console.parts import Part, envelope_parts, text_part
from gateway.serving.console.read_form import Mistake, ReadForm
from gateway.serving.console.schema_form import ABSENT, form_of
from gateway.serving.console.submitted import submitted
from gateway.serving.console.tries import Question, Try
from gateway.serving.console.uri_template import expanded
from gateway.serving.console.views import View, number_in
from gateway.telemetry.sanitize import neutral
from gateway.upstream.connection.host_requests import SAMPLING

_LONGEST = 500
_MOST_MISTAKES = 20
_AT_ONCE_SECONDS = 1.0
"""Seconds for which an answer waits, so that the page of a quick call is there at once."""
_MESSAGES = 200


def _chosen(request: Request) -> str | None:
    return request.query_params.get("profile", "")[:_LONGEST] or None


async def _tools(console: Console, request: Request) -> Mapping[str, Any]:
    profile, text = _chosen(request), request.query_params.get("text", "")[:_LONGEST]
    await offers.prepare_tools(console, profile)
    listed = offers.list_tools(console, profile, text, number_in(request, "page") or 1)
    return {**offers.profiles_of(console, profile), **listed, "text": text}


async def _others(console: Console, request: Request) -> Mapping[str, Any]:
    profile, text = _chosen(request), request.query_params.get("text", "")[:_LONGEST]
    return {"profile": profile or "", "text": text, **await offers.list_others(console, profile, text)}


async def _tool(console: Console, request: Request) -> Mapping[str, Any]:
    profile = _chosen(request)
    await offers.prepare_tools(console, profile)
    again = number_in(request, "call")
    given: Any = ABSENT
    if again is not None:
        given = repeatable_arguments(console.gateway, console.operator(None), await console.call(again)) or {}
    shown = offers.show_tool(console, request.path_params["name"], profile, given)
    return {**offers.profiles_of(console, profile), **shown, "as_json": None, "again": again}


async def _form(console: Console, request: Request) -> Mapping[str, Any]:
    """The arguments in the other way to give them: as JSON, or in the form, with what is given already."""
    name, sent = request.path_params["name"], await submitted(request)
    shown = {"as_json": None, "form": None, "path": offers.address(name), "problem": None}
    try:
        read = sent.value()
    except InvalidRequest as error:
        if (text := sent.text("json")) and sent.data is None:  # it stays to be corrected
            return {**shown, "as_json": text, "problem": error.message}
        raise
    if sent.text("as") == "json":
        left_out = f"left out: {_listed(read.mistakes)}" if read.mistakes else None
        return {**shown, "as_json": _editable(read.value), "problem": left_out}
    profile = sent.text("profile") or None
    await offers.prepare_tools(console, profile)
    form = offers.tool_form(console, name, profile, read.value)
    return {**shown, "form": form}


def _editable(value: Any) -> str:
    """Return JSON to be edited: readable, unless something in it would be lost in a page."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return text if neutral(text) == text else json.dumps(value, indent=2)


def _listed(mistakes: Sequence[Mistake]) -> str:
    return "; ".join(f"{mistake.at or 'as a whole'}: {mistake.text}" for mistake in mistakes)


async def _call(console: Console, request: Request) -> Mapping[str, Any]:
    name, sent = request.path_params["name"], await submitted(request)
    profile, read = sent.text("profile") or None, sent.value()
    await offers.prepare_tools(console, profile)
    schema = offers.argument_schema(console, name, profile)
    mistakes = read.mistakes or ([] if sent.is_set("anyway") else _misfits(console, name, schema, read))
    if mistakes:
        return _refused(mistakes, can_force=not read.mistakes)
    params = {"name": name, "arguments": read.value}
    return await _begun(console, "tools/call", params, profile)


def _misfits(console: Console, name: str, schema: WireObject, read: ReadForm) -> list[Mistake]:
    found = console.checks.mistakes(name, schema, read.value, _MOST_MISTAKES)
    if found is None:
        return []
    told = [
        Mistake(read.place_of(mistake.place), mistake.text if mistake.missing is None else "this is required")
        for mistake in found
    ]
    return told or [Mistake("", "the arguments do not fit the input schema")]


def _refused(mistakes: Sequence[Mistake], *, can_force: bool) -> dict[str, Any]:
    return {"run": None, "mistakes": [mistake._asdict() for mistake in mistakes], "can_force": can_force}


async def _begun(console: Console, method: str, params: Mapping[str, Any], profile: str | None) -> dict[str, Any]:
    caller = console.operator(profile)
    console.gateway.router.profile_of(caller)  # raises ProfileError before anything begins
    begun = console.tries.begin(method, params, caller)
    with anyio.move_on_after(_AT_ONCE_SECONDS):
        await begun.stirred.wait()
    return _shown(console, begun)


def _shown(console: Console, one: Try) -> dict[str, Any]:
    return {"run": show_try(console, one), "mistakes": [], "can_force": False}


def _sent_to(console: Console, one: Try) -> str:
    profile = console.gateway.router.profile_of(one.caller)
    return profile.title or profile.name


def show_try(console: Console, one: Try) -> dict[str, Any]:
    """Return a try as it is now.

    `state` (running, done, failed, cancelled), `progress` (`done`, `of`, `words`, `percent`) and `lines` of the
    upstream's log; the `question` that it waits for; `error` with its `remedy`; the number of its `call`, and the URI
    of the `page` that its result is shown with, and the places of those `embedded` in it; `page_note`: what the host of
    the chosen profile does otherwise with pages; `messages`: what came of it, each with its `role` (empty for a tool's
    result or a resource) and `parts`; `sent_to`: the title of the profile whose host is sent that.
    """
    done, of, words = one.progress or (0.0, None, None)
    percent = round(100 * min(1.0, max(0.0, done / of))) if of and of > 0 else None
    progress = {"done": done, "of": of, "words": words, "percent": percent}
    result = one.result
    return {
        "id": one.id,
        "method": one.method,
        "state": one.state,
        "progress": progress if one.progress else None,
        "lines": one.lines,
        "question": _question(console, one.questions[0]) if one.questions else None,
        "error": None if one.error is None else one.error.message,
        "remedy": None if one.error is None else one.error.remedy,
        "call": None if one.call is None else one.call.number,
        "page": None if one.call is None or one.state != "done" else page_uri(console, one.call),
        "page_note": _page_note(console, one),
        "embedded": list(embedded_pages(one.call.result)) if one.call is not None and one.state == "done" else [],
        "sent_to": _sent_to(console, one),
        "is_error": as_object(result).get("isError") is True,
        "messages": [] if result is None else _messages(console, one.method, result),
    }


def _page_note(console: Console, one: Try) -> str | None:
    """Say what the host of the chosen profile does otherwise with a page than the console, if one was chosen."""
    if one.caller.profile is None:
        return None
    has_data = "structuredContent" in as_object(None if one.call is None else one.call.result)
    return drawn_elsewhere(console.gateway.router.profile_of(one.caller), has_data=has_data)


def _messages(console: Console, method: str, result: WireObject) -> list[dict[str, Any]]:
    if method == "prompts/get":
        return _spoken(console, objects_in(result.get("messages")))
    if method == "resources/read":
        blocks = [{"type": "resource", "resource": one} for one in objects_in(result.get("contents"))]
        return [{"role": "", "parts": _parts(console, {"content": blocks})}]
    return [{"role": "", "parts": _parts(console, result)}]


def _spoken(console: Console, messages: Sequence[WireObject]) -> list[dict[str, Any]]:
    """Return messages of prompts and of sampling; from 2025-11-25 on, these may have several blocks."""
    return [
        {
            "role": str(message.get("role", "")),
            "parts": _parts(console, {"content": as_list(message.get("content")) or [message.get("content")]}),
        }
        for message in messages[:_MESSAGES]
    ]


def _parts(console: Console, result: WireObject) -> list[Part]:
    return envelope_parts(lift_within(result, console.gateway.settings.limits.blocks), console.shelf)


def _question(console: Console, question: Question, given: Any = ABSENT) -> dict[str, Any]:
    """Return what is asked; its form has the values that are `given` already."""
    params = question.params
    shown: dict[str, Any] = {"number": question.number, "message": str(params.get("message") or "")}
    if question.method == SAMPLING:
        system = params.get("systemPrompt")
        return {
            **shown,
            "kind": "sampling",
            "messages": _spoken(console, objects_in(params.get("messages"))),
            "system": text_part(system) if isinstance(system, str) and system else None,
            "most_tokens": params.get("maxTokens"),
        }
    if params.get("mode") == "url":
        url = str(params.get("url") or "")
        return {**shown, "kind": "url", "url": url, "is_link": url.startswith(("https://", "http://"))}
    return {**shown, "kind": "form", "form": form_of(params.get("requestedSchema"), given)}


async def _run(console: Console, request: Request) -> Mapping[str, Any]:
    return _shown(console, console.run(request.path_params["run"]))


async def _asked(console: Console, request: Request) -> Mapping[str, Any]:
    """Whether a question is still open, without what it asks: the page has it, maybe with half an answer."""
    one, number = console.run(request.path_params["run"]), number_in(request, "number")
    return {"id": one.id, "number": number, "is_open": bool(one.questions) and one.questions[0].number == number}


async def _cancel(console: Console, request: Request) -> Mapping[str, Any]:
    one = console.run(request.path_params["run"])
    one.scope.cancel()
    with anyio.move_on_after(_AT_ONCE_SECONDS):
        await one.ended.wait()
    return _shown(console, one)


async def _answer(console: Console, request: Request) -> Mapping[str, Any]:
    one, sent = console.run(request.path_params["run"]), await submitted(request)
    number, action = sent.text("number"), sent.text("action")
    question = next((asked for asked in one.questions if str(asked.number) == number), None)
    if question is None:
        return _shown(console, one)  # it was withdrawn, or answered from another page
    if action not in ("accept", "decline", "cancel"):
        raise InvalidRequest("the answer is accept, decline or cancel", remedy="give it as `action`")
    if question.method == SAMPLING:
        question.give(_sampled(sent.text("text")) if action == "accept" else None)
    elif action == "accept" and question.params.get("mode") != "url":
        read = sent.value("content")
        schema = as_object(question.params.get("requestedSchema"))
        mistakes = read.mistakes or _misfits(console, "the question", schema, read)
        if mistakes:
            again = {**show_try(console, one), "question": _question(console, question, read.value)}
            return {**_refused(mistakes, can_force=False), "run": again}
        question.give({"action": action, "content": read.value})
    else:
        question.give({"action": action})
    one.stirred = anyio.Event()
    with anyio.move_on_after(_AT_ONCE_SECONDS):
        await one.stirred.wait()
    return _shown(console, one)


def _sampled(text: str) -> dict[str, Any]:
    content = {"type": "text", "text": text.replace("\r\n", "\n")}
    return {"role": "assistant", "content": content, "model": CONSOLE_CLIENT, "stopReason": "endTurn"}


async def _prompt(console: Console, request: Request) -> Mapping[str, Any]:
    profile = _chosen(request)
    shown = await offers.show_prompt(console, request.path_params["name"], profile)
    return {**offers.profiles_of(console, profile), **shown, "as_json": None}


async def _get_prompt(console: Console, request: Request) -> Mapping[str, Any]:
    name, sent = request.path_params["name"], await submitted(request)
    read = sent.value()
    if read.mistakes:
        return _refused(read.mistakes, can_force=False)
    return await _begun(console, "prompts/get", {"name": name, "arguments": read.value}, sent.text("profile") or None)


async def _resource(console: Console, request: Request) -> Mapping[str, Any]:
    profile, query = _chosen(request), request.query_params
    shown = await offers.show_resource(console, query.get("uri", ""), query.get("template", ""), profile)
    return {**offers.profiles_of(console, profile), **shown, "as_json": None}


async def _read(console: Console, request: Request) -> Mapping[str, Any]:
    sent = await submitted(request)
    template, uri, read = sent.text("template"), sent.text("uri"), sent.value()
    if read.mistakes:
        return _refused(read.mistakes, can_force=False)
    if template:
        uri = expanded(template, {name: str(value) for name, value in as_object(read.value).items()})
    if not uri:
        raise InvalidRequest("which resource?", remedy="give its uri, or the template of one")
    return await _begun(console, "resources/read", {"uri": uri}, sent.text("profile") or None)


async def _file(console: Console, request: Request) -> Mapping[str, Any]:
    """Store the body of a request as content, for an argument that takes it: the answer has its handle."""
    most = console.gateway.settings.content.max_upload_bytes
    declared = request.headers.get("content-type", "").strip().lower() or None

    async def pieces() -> AsyncIterator[bytes]:
        size = 0
        async for piece in request.stream():
            size += len(piece)
            if size > most:
                raise ContentTooLarge(
                    f"the file is larger than {most:,} bytes", remedy="see [content] max_upload_bytes"
                )
            if piece:
                yield piece

    head, rest = await peeked(pieces())
    name = clean_name(request.query_params.get("name"))
    stored = await console.gateway.store.put(
        rest, owner=console.operation.principal, media_type=typed(head, declared), name=name
    )
    shown = neutral(stored.name) if stored.name else None
    return {"handle": stored.handle, "media_type": stored.media_type, "bytes": stored.size, "name": shown}


VIEWS = (
    View("/try", "try.html", _tools, "try", "Try"),
    View("/try/others", "try_others.html", _others, "try"),
    View("/try/tools/{name:path}", "try_tool.html", _tool, "try"),
    View("/try/tools/{name:path}", "try_run.html", _call, "try", method="POST"),
    View("/try/form/{name:path}", "try_arguments.html", _form, "try", method="POST"),
    View("/try/prompts/{name:path}", "try_prompt.html", _prompt, "try"),
    View("/try/prompts/{name:path}", "try_run.html", _get_prompt, "try", method="POST"),
    View("/try/resources", "try_resource.html", _resource, "try"),
    View("/try/resources", "try_run.html", _read, "try", method="POST"),
    View("/try/runs/{run}", "try_run.html", _run, "try"),
    View("/try/runs/{run}/asked", "try_asked.html", _asked, "try"),
    View("/try/runs/{run}/cancel", "try_run.html", _cancel, "try", method="POST"),
    View("/try/runs/{run}/answer", "try_run.html", _answer, "try", method="POST"),
    View("/try/files", "try_file.html", _file, "try", method="POST"),
)
