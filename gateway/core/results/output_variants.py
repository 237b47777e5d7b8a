"""The forms of a result that a host may choose from (SEP-3279), made from the two that tools have had until now.

Built to https://github.com/modelcontextprotocol/modelcontextprotocol/pull/3279 at e63642f0 (2026-08-19). The protocol
revision decides on the shape: `REVISION` and later have `outputVariants`, `requestedOutputs` and `outputs`; earlier
ones have `outputSchema`, `content` and `structuredContent`.

What a tool of an earlier revision can give, as the proposal's "Tool migration" has it:

    assistant/content         its content, shaped for the host's model
    user/content              its content as it came, for the host to show
    programmatic/structured   its structured content, if it declares what that is
    io.modelcontextprotocol/ui, structured     the same for its page, if the host shows pages

One schema is not taken to suit a model, so `assistant/structured` is offered only for a tool that declares it itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gateway.core import apps
from gateway.core.fact_words import plain
from gateway.core.model.apps_extension import EXTENSION
from gateway.core.model.json_values import as_list, is_list, is_object, objects_in
from gateway.core.model.wire import WireObject
from gateway.core.profiles.profile import Profile
from gateway.errors import InvalidRequest, OutputUnavailable

REVISION = "2026-12-01"
"""The revision that the proposal is for."""

VARIANTS, REQUESTED, OUTPUTS = "outputVariants", "requestedOutputs", "outputs"
"""The members of a tool, of a call and of a result."""

_FORMATS = {"assistant": ("content", "structured"), "user": ("content", "structured"), "programmatic": ("structured",)}
_MOST = 16


class Selector(NamedTuple):
    """A form of a result: whom it is for, and how it is written."""

    audience: str
    format: str

    def __str__(self) -> str:
        return f"{plain(self.audience, 100)}/{plain(self.format, 100)}"

    def wire(self) -> dict[str, str]:
        """The selector as JSON."""
        return {"audience": self.audience, "format": self.format}


FALLBACK = Selector("assistant", "content")
"""The form that every tool has, and that a host gets which chooses none."""
FOR_USER = Selector("user", "content")
FOR_PROGRAM = Selector("programmatic", "structured")
FOR_MODEL = Selector("assistant", "structured")
FOR_PAGE = Selector(EXTENSION, "structured")


def for_chosen_outputs(profile: Profile) -> Profile:
    """Return the profile for a host that chooses: its model is sent everything in the content."""
    return profile.model_copy(update={"structured": profile.structured.model_copy(update={"send": "never"})})


def declared_variants(tool: WireObject, *, shows_pages: bool) -> list[dict[str, Any]]:
    """Return the `outputVariants` of a tool for a host, of which no two are alike."""
    own = tool.get(VARIANTS)
    found = _own_variants(own, shows_pages=shows_pages) if is_list(own) else _inferred(tool, shows_pages=shows_pages)
    if FALLBACK not in found:
        found = {FALLBACK: FALLBACK.wire(), **found}
    return list(found.values())


def with_variants(tool: WireObject, *, shows_pages: bool) -> dict[str, Any]:
    """Return a tool as a host of `REVISION` is told of it."""
    kept = {key: value for key, value in tool.items() if key not in ("outputSchema", VARIANTS)}
    return {**kept, VARIANTS: declared_variants(tool, shows_pages=shows_pages)}


def without_variants(tools: Sequence[Any]) -> Sequence[Any]:
    """Return tools as hosts of earlier revisions are told of them; the same sequence if they are already."""
    if not any(is_object(tool) and VARIANTS in tool for tool in tools):
        return tools
    return [
        {key: value for key, value in tool.items() if key != VARIANTS} if is_object(tool) else tool for tool in tools
    ]


def chosen_outputs(requested: object, variants: Iterable[WireObject] | None = None) -> tuple[Selector, ...]:
    """Return the selectors in a call's `requestedOutputs`, which are to be among the tool's `variants`, if given.

    Raises:
        InvalidRequest: it is malformed, or chooses a form twice, or one that the tool does not declare.
    """
    if requested is None:
        return (FALLBACK,)
    if not is_list(requested) or not 0 < len(requested) <= _MOST:
        raise InvalidRequest(f"{REQUESTED} must be a list of 1 to {_MOST} forms")
    chosen = tuple(_selector(each) for each in requested)
    if len(set(chosen)) < len(chosen):
        raise InvalidRequest(f"{REQUESTED} has the same form twice")
    if variants is not None:
        known = [_selector(each) for each in variants]
        for each in chosen:
            if each not in known:
                words = f"the tool does not declare the form {each}"
                raise InvalidRequest(words, remedy=f"choose among {', '.join(map(str, known))}")
    return chosen


def outputs_of(
    shaped: WireObject, raw: WireObject, chosen: Sequence[Selector], most_blocks: int | None = None
) -> list[Any]:
    """Return the `outputs` of a result: `shaped` is what the host's model gets, `raw` what the tool returned.

    Of content for the user, at most `most_blocks` are given.

    Of a failed call, they are those of the chosen forms in which it can be told.

    Raises:
        OutputUnavailable: the tool returned nothing from which a chosen form can be made.
    """
    given = {_selector(each): each for each in objects_in(raw.get(OUTPUTS)) if _is_selector(each)}
    outputs = [found for each in chosen if (found := _output(each, shaped, raw, given, most_blocks)) is not None]
    failed = raw.get("isError") is True or shaped.get("isError") is True
    if len(outputs) == len(chosen) or (failed and outputs):
        return outputs
    if failed:
        raise OutputUnavailable(_said(shaped) or "the call failed")
    had = {_selector(each) for each in outputs}
    lacking = ", ".join(str(each) for each in chosen if each not in had)
    raise OutputUnavailable(f"the tool returned nothing in the form {lacking}")


def in_chosen_outputs(result: dict[str, Any], requested: object) -> dict[str, Any]:
    """Return the result of a call as a host of `REVISION` gets it, that has `requested` these forms.

    One that is none of a tool's has no outputs yet: an answer of the gateway's own, for the model to read. Questions to
    the host stay as they are.

    Raises:
        InvalidRequest: what it has requested is malformed.
        OutputUnavailable: it has requested a form that is not there.
    """
    if result.get("resultType", "complete") != "complete":
        return result
    kept = {key: value for key, value in result.items() if key not in ("content", "structuredContent")}
    return kept if OUTPUTS in result else {**kept, OUTPUTS: outputs_of(result, result, chosen_outputs(requested))}


def as_earlier_tool(tool: WireObject) -> WireObject:
    """Return a tool of `REVISION` with the `outputSchema` that earlier revisions have, beside its variants."""
    variants = {_selector(each): each for each in objects_in(tool.get(VARIANTS)) if _is_selector(each)}
    kept = {key: value for key, value in tool.items() if key != "outputSchema"}
    schema = variants.get(FOR_MODEL, {}).get("schema")
    return {**kept, "outputSchema": schema} if is_object(schema) else kept


def as_earlier_result(result: WireObject, asked: Sequence[object]) -> dict[str, Any]:
    """Return a result of `REVISION` with the members that earlier revisions have, beside the outputs `asked` for."""
    wanted = [_selector(each) for each in asked]
    found = {_selector(each): each for each in objects_in(result.get(OUTPUTS)) if _is_selector(each)}
    outputs = {each: found[each] for each in wanted if each in found}
    earlier = {key: value for key, value in result.items() if key not in ("content", "structuredContent")}
    earlier[OUTPUTS] = list(outputs.values())
    earlier["content"] = as_list(outputs.get(FALLBACK, {}).get("content"))
    if "structuredContent" in (found := outputs.get(FOR_PAGE) or outputs.get(FOR_MODEL, {})):
        earlier["structuredContent"] = found["structuredContent"]
    return earlier


def asked_of_upstream(
    declared: Sequence[Selector], chosen: object, *, shows_pages: bool
) -> list[dict[str, str]] | None:
    """Return the `requestedOutputs` for an upstream of `REVISION`; None to be given what every tool has.

    `declared` are the forms of the tool, `chosen` those that the host has chosen, if it does; the gateway itself needs
    what a model reads. For a host that chooses none and shows pages, the page's data is wanted too.
    """
    for_host = [_selector(each) for each in objects_in(chosen) if _is_selector(each)]
    wanted = [FALLBACK, *(for_host if is_list(chosen) else [FOR_PAGE, FOR_MODEL] if shows_pages else [FOR_MODEL])]
    asked = [each for each in dict.fromkeys(wanted) if each in declared]
    return None if asked in ([], [FALLBACK]) else [each.wire() for each in asked]


def selectors_of(tool: WireObject) -> tuple[Selector, ...]:
    """Return the forms that a tool of `REVISION` declares."""
    return tuple(_selector(each) for each in objects_in(tool.get(VARIANTS)) if _is_selector(each))


def _inferred(tool: WireObject, *, shows_pages: bool) -> dict[Selector, dict[str, Any]]:
    found: dict[Selector, dict[str, Any]] = {each: dict(each.wire()) for each in (FALLBACK, FOR_USER)}
    schema = tool.get("outputSchema")
    if is_object(schema):
        found[FOR_PROGRAM] = {**FOR_PROGRAM.wire(), "schema": schema}
        if shows_pages and apps.pages(tool):
            found[FOR_PAGE] = dict(FOR_PAGE.wire())
    return found


def _own_variants(declared: Sequence[Any], *, shows_pages: bool) -> dict[Selector, dict[str, Any]]:
    """Return the sound ones of what a tool declares: the first of those that are alike, and none that is not known."""
    found: dict[Selector, dict[str, Any]] = {}
    for each in objects_in(declared[:_MOST]):
        if not _is_selector(each):
            continue
        selector = _selector(each)
        known = selector.format in _FORMATS.get(selector.audience, ())
        if (known or (selector == FOR_PAGE and shows_pages)) and selector not in found:
            found[selector] = dict(each)
    return found


def _output(
    chosen: Selector,
    shaped: WireObject,
    raw: WireObject,
    given: Mapping[Selector, WireObject],
    most_blocks: int | None,
) -> dict[str, Any] | None:
    if chosen == FALLBACK:
        return {**chosen.wire(), "content": as_list(shaped.get("content"))}
    if chosen in given:
        member = "content" if chosen.format == "content" else "structuredContent"
        return {**chosen.wire(), member: given[chosen].get(member)} if member in given[chosen] else None
    if is_list(raw.get(OUTPUTS)):
        return None  # it has said which forms there are
    if chosen == FOR_USER:
        return {**chosen.wire(), "content": as_list(raw.get("content"))[:most_blocks]}
    if chosen.format == "structured" and "structuredContent" in raw:
        return {**chosen.wire(), "structuredContent": raw["structuredContent"]}
    return None


def _is_selector(value: WireObject) -> bool:
    return isinstance(value.get("audience"), str) and isinstance(value.get("format"), str)


def _selector(value: object) -> Selector:
    if not is_object(value) or not _is_selector(value):
        raise InvalidRequest(f"each form in {REQUESTED} needs an audience and a format")
    return Selector(value["audience"], value["format"])


def _said(shaped: WireObject) -> str:
    texts = [block["text"] for block in objects_in(shaped.get("content")) if isinstance(block.get("text"), str)]
    return plain(" ".join(texts), 1_000)
