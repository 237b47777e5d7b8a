"""A whole turn for a model API: the same loop of planning and performing, then written in the API's own form."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from gateway.config.builtin_profiles import model_profiles
from gateway.config.schema import MediaSettings
from gateway.core.assembling import Assembled, Choices, assemble
from gateway.core.lifting import lift
from gateway.core.lowering import (
    anthropic_messages,
    bedrock_converse,
    cohere,
    gemini,
    gemini_interactions,
    mistral,
    ollama,
    openai_chat,
    openai_responses,
)
from gateway.core.model.effects import Describe, Effect, Failed, Keep, Kept, Outcome, WriteFile
from gateway.core.model.envelope import Envelope
from gateway.core.model.model_profile import ModelProfile, Writing
from gateway.core.model.notes import Note
from gateway.core.model.turn import Call, Turn
from gateway.core.model_profiles import choose_model_profile, with_tool_images
from gateway.core.planning import ROUNDS
from gateway.core.rescue import rescue
from gateway.errors import InvalidRequest, UnsupportedContent
from gateway.shaping.effects import Describer, Hands, perform
from gateway.shaping.rehosting import Files, with_files_fetched, with_files_uploaded
from gateway.store import ContentStore

WRITERS: Mapping[Writing, Callable[[Turn], list[dict[str, Any]]]] = {
    "openai_chat": openai_chat.write,
    "openai_responses": openai_responses.write,
    "anthropic_messages": anthropic_messages.write,
    "gemini": gemini.write,
    "gemini_interactions": gemini_interactions.write,
    "bedrock_converse": bedrock_converse.write,
    "mistral": mistral.write,
    "cohere": cohere.write,
    "ollama": ollama.write,
}

OnUnsupported: TypeAlias = Literal["note", "error", "transcode"]
Links: TypeAlias = Literal["text", "native"]
ToolImages: TypeAlias = Literal["in_tool", "follow_up"]


@dataclass(frozen=True)
class LoweredTurn:
    """What comes after the assistant's message, as plain JSON values, and every change that was made."""

    messages: list[dict[str, Any]]
    notes: tuple[Note, ...]


async def lower_turn(
    calls: Sequence[Any],
    target: str,
    *,
    model: str | None = None,
    base_url: str | None = None,
    store: ContentStore | None = None,
    files: Files | None = None,
    owner: str = "local",
    on_unsupported: OnUnsupported = "note",
    links: Links = "text",
    tool_images: ToolImages | None = None,
    describer: Describer | None = None,
) -> LoweredTurn:
    """The messages that give a model the results of all its calls, in the one form that its API accepts.

    Args:
        calls: in the order of the assistant's calls. Each is a mapping or an object with `id`, `name`, `result` and, if
            you like, `arguments`; the result is an `Envelope`, a CallToolResult's JSON, or an SDK's CallToolResult.
            `_meta["mcp-gateway/raw"]` of a result may hold the API's own content, by target; it is sent as it is.
        target: `openai_chat`, `openai_responses`, `anthropic_messages`, `gemini`, ... (docs/models/README.md).
        model: the model's name, where it decides (`gemini-2.5-pro` has other rules than `gemini-3-pro`).
        base_url: the API's address, where it decides (`https://api.deepseek.com`).
        store: where content is kept that the API cannot take; without one it is named, and not kept.
        files: the files of model APIs' providers (`gateway.provider_files.ProviderFiles`): large content is uploaded
            once, and sent by its id where the API takes one; a file of another provider is fetched, and goes on as
            bytes. Without them, a file of another provider is a line.
        owner: whom the kept content belongs to.
        on_unsupported: what becomes of content of a kind that the API cannot take. `note`: one line of text names it;
            `error`: the turn is refused; `transcode`: another kind, where there is one (the source of a drawing as
            text; the text of a PDF, or its pages as images), else a line. Images and sound of a type that is not taken
            are converted in any case, files of text are text.
        links: `text`: a link is one line; `native`: an API that fetches addresses itself gets them, where the link
            says the type. The gateway fetches nothing. A provider's file (`openai-file:file-abc`) needs no choice.
        tool_images: where images go with a server whose model's chat template decides (vLLM, llama.cpp, Ollama, ...):
            into the tool's message, or after. None: as the profile knows it of the model, after where it does not.
        describer: what says in words what a model that sees no images, or hears no sound, is not sent: an object with
            `kinds` (of `"image"`, `"audio"`) and `async describe(content, media_type) -> Described`.

    Images are fitted in worker processes where they have to be.

    Raises:
        ProfileError: there is no such target, or it leaves no choice of `tool_images`.
        InvalidRequest: a call without id, name or result.
        UnsupportedContent: with `on_unsupported="error"`, the API cannot take something.
    """
    from gateway.media import MediaWorkers  # processes are wanted only where an image has to be fitted

    profile = _profile(target, model, base_url, tool_images)
    transcodes = on_unsupported == "transcode"
    choices = Choices(
        links_native=links == "native",
        drawings_as_text=transcodes,
        documents_converted=transcodes,
        describes=frozenset(describer.kinds) if describer is not None else frozenset(),
    )
    turn = await with_files_fetched([_call(call) for call in calls], profile, files)
    outcomes: dict[str, Outcome] = {}
    assembled = assemble(turn, profile, outcomes, choices)
    async with MediaWorkers(MediaSettings()) as media:
        for _ in range(ROUNDS):
            if not assembled.wanted:
                break
            outcomes |= await perform(assembled.wanted, Hands(store or Nowhere(), media, describer), owner)
            assembled = assemble(turn, profile, outcomes, choices)
    uploaded, told = await with_files_uploaded(assembled.turn, profile, files)
    return _written(replace(assembled, turn=uploaded, notes=(*assembled.notes, *told)), profile, on_unsupported)


def lower_turn_now(
    calls: Sequence[Any],
    target: str,
    *,
    model: str | None = None,
    base_url: str | None = None,
    on_unsupported: OnUnsupported = "note",
    links: Links = "text",
    tool_images: ToolImages | None = None,
) -> LoweredTurn:
    """`lower_turn` without effects and without await: what needs one (an image to be fitted) becomes a line.

    Raises:
        ProfileError, InvalidRequest, UnsupportedContent: as `lower_turn`.
    """
    profile = _profile(target, model, base_url, tool_images)
    drawings = on_unsupported == "transcode"
    choices = Choices(links_native=links == "native", drawings_as_text=drawings, fits=False)
    turn = [_call(call) for call in calls]
    outcomes: dict[str, Outcome] = {}
    assembled = assemble(turn, profile, outcomes, choices)
    for _ in range(ROUNDS):
        if not assembled.wanted:
            break
        outcomes |= {key: _undone(effect) for key, effect in assembled.wanted.items()}
        assembled = assemble(turn, profile, outcomes, choices)
    return _written(assembled, profile, on_unsupported)


def _profile(target: str, model: str | None, base_url: str | None, tool_images: ToolImages | None) -> ModelProfile:
    profile = choose_model_profile(model_profiles(), target, model=model, base_url=base_url)
    return profile if tool_images is None else with_tool_images(profile, tool_images)


def _undone(effect: Effect) -> Outcome:
    match effect:
        case Keep() | WriteFile():
            return Kept(None)
        case Describe():
            return Failed("nothing describes it")
        case _:
            return Failed("it has to be fitted to the API, which lower_turn does")


def _written(assembled: Assembled, profile: ModelProfile, on_unsupported: OnUnsupported) -> LoweredTurn:
    lost = [note.text for note in assembled.notes if note.kind in ("named", "dropped", "failed")]
    if on_unsupported == "error" and lost:
        raise UnsupportedContent(f"{profile.name} cannot take all of the results: {'; '.join(lost)}")
    return LoweredTurn(WRITERS[profile.writing](assembled.turn), assembled.notes)


def _call(call: Any) -> Call:
    def member(name: str) -> Any:
        return cast("Mapping[str, Any]", call).get(name) if isinstance(call, Mapping) else getattr(call, name, None)

    call_id, name, result = member("id"), member("name"), member("result")
    if not isinstance(call_id, str) or not isinstance(name, str) or result is None:
        raise InvalidRequest("a call needs an id, a name and a result")
    return Call(call_id, name, rescue(as_envelope(result)), member("arguments") or {})


def as_envelope(result: Any) -> Envelope:
    """An envelope of an envelope, of a CallToolResult's JSON, or of an SDK's CallToolResult.

    Raises:
        InvalidRequest: it is none of them.
    """
    if isinstance(result, Envelope):
        return result
    if isinstance(result, Mapping):
        return lift(cast("Mapping[str, Any]", result))
    dump: Any = getattr(result, "model_dump", None)
    if dump is None:
        raise InvalidRequest(f"a result has to be a CallToolResult, not {type(result).__name__}")
    return lift(dump(mode="json", by_alias=True, exclude_none=True))


@dataclass(frozen=True)
class _NotKept:
    """What was not kept has no name."""

    handle: None = None


class Nowhere:
    """A store that keeps nothing."""

    async def put(
        self, content: bytes, *, owner: str, media_type: str, name: str | None = None, origin: str | None = None
    ) -> Any:
        """Nothing is kept: content that is not shown is named in a line without a handle."""
        return _NotKept()
