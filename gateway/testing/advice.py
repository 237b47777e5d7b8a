"""Advice for authors of servers: what to change so that every host shows what a tool returns. Pure.

Each rule is based on measurements of real hosts (docs/profiles.md has the evidence); docs/authors.md explains them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from gateway.core.apps import for_the_model
from gateway.core.fact_words import plain
from gateway.core.model.json_values import as_object
from gateway.core.profiles.profile import Profile
from gateway.core.tools.catalogue.faults import faults
from gateway.core.tools.catalogue.names import NameRules
from gateway.core.tools.catalogue.repair import is_object_schema, unusable

RULES: Mapping[str, str] = {
    "image-no-type": "An image has to say its mimeType: typed clients refuse the whole result without it.",
    "image-wrong-type": "The mimeType has to be that of the bytes: some hosts send it on, and model APIs refuse it.",
    "image-broken": "The data of an image is standard base64, without `data:` and without line breaks.",
    "image-type": "Images are PNG, JPEG, GIF or WebP: other types are shown by almost no host.",
    "image-large": "Images have at most 2,000 pixels on the longer edge, and at most 1 MB.",
    "text-missing": "An image needs a text beside it that says what it is: for hosts and models that cannot see it.",
    "base64-in-text": "Base64 does not belong in text: a model pays for every character, and sees nothing.",
    "text-long": "Text over 40,000 characters is cut by most hosts.",
    "text-empty": "An empty text block is refused by some model APIs.",
    "audio-unseen": "Almost no host plays sound to its model: return what matters in it as text, or as a picture.",
    "document-unseen": "Embedded files such as PDF are base64 text in many hosts, and lost in others.",
    "embedded-image": "An image goes into an image block: embedded as a resource it is base64 text in many hosts.",
    "embedded-text": "A text goes into a text block: embedded as a resource it is lost in some hosts.",
    "link-unfollowed": "No host follows a link to a resource: return what the model is to see.",
    "audience-ignored": "Every host shows its model what is meant for the user only.",
    "block-unknown": "A block of a kind that a client does not know costs it the whole result.",
    "structured-hides-media": "Structured content beside images makes some hosts drop the images.",
    "media-in-structured": "Base64 in structured content is seen by no model, and paid for by many.",
    "structured-alone": "Structured content needs its text twin: several hosts show nothing else.",
    "structured-differs": "Text and structured content say the same: several hosts show their models only one of them.",
    "structured-missing": "A tool with an outputSchema has to return structured content: many hosts fail the call.",
    "image-beside-error": "An image beside isError is dropped by many hosts.",
    "error-without-text": "A failed call has to say in text why.",
    "result-empty": "An empty result tells the model nothing; some hosts fail on it.",
    "result-large": "A result over 1,048,576 characters is refused by Claude Desktop and others.",
    "content-missing": "A result has `content`, a list: clients refuse the whole result without it.",
    "name-long": "A tool's name fits the shortest limit of a host, with what the host puts before it.",
    "name-characters": "A tool's name has letters, digits, `_` and `-` only.",
    "description-missing": "A tool has a description: it is all that a model knows of it.",
    "hints-missing": "A tool says whether it only reads (readOnlyHint): hosts ask before every call of the others.",
    "schema": "A tool's schemas are objects whose references stay inside of them.",
}
"""All rules by name, each in one sentence."""


@dataclass(frozen=True)
class Advice:
    """One thing to change: the rule, the place (`content[1]`, `the tool`), the current state, and what to do."""

    rule: str
    where: str
    now: str
    change: str

    def __str__(self) -> str:
        return f"{self.where}: {self.now}; {self.change}"

    def to_json(self) -> dict[str, Any]:
        """Return the advice as JSON for programs."""
        return asdict(self)


def advise_on_tool(tool: Any, server: str, profiles: Iterable[Profile]) -> Iterator[Advice]:
    """Return what to change in a tool's declaration. Hosts know the tool's server as `server`."""
    reason = unusable(tool)
    if reason is not None:
        yield Advice(
            "schema", "the tool", f"hosts refuse it: {reason}", 'declare a name and an inputSchema of type "object"'
        )
        return
    declared = cast("Mapping[str, Any]", tool)
    yield from _name(str(declared["name"]), server, profiles)
    description = declared.get("description")
    if not isinstance(description, str) or not description.strip():
        yield Advice(
            "description-missing", "the tool", "it has no description", "say what it does, and what it returns"
        )
    hints: Any = declared.get("annotations")
    reads_only = as_object(hints).get("readOnlyHint")
    # Hosts do not ask their users about tools that only pages call.
    if not isinstance(reads_only, bool) and for_the_model(declared):
        change = "declare annotations.readOnlyHint: true if it changes nothing, false if it does"
        yield Advice("hints-missing", "the tool", "it does not say whether it only reads", change)
    for member in ("inputSchema", "outputSchema"):
        if member in declared:
            for fault in faults(declared[member])[:3]:
                change = "move what it names into $defs" if fault.kind == "external" else "fix the schema"
                yield Advice("schema", member, plain(str(fault), 200), change)


def _name(name: str, server: str, profiles: Iterable[Profile]) -> Iterator[Advice]:
    short: dict[str, int] = {}
    strict: list[str] = []
    for profile in profiles:
        rules = NameRules.of(profile.tools, server)
        if rules.legal(name) != name:
            strict.append(profile.name)
        if len(name) > rules.budget:
            short[profile.name] = rules.budget
    if strict:
        now = f"its name has characters that {', '.join(strict)} do not take"
        yield Advice("name-characters", "the tool", now, "use letters, digits, _ and - only")
    if short:
        now = f"its name has {len(name)} characters, too many for {', '.join(short)} with their own prefix"
        yield Advice("name-long", "the tool", now, f"use at most {min(short.values())}")


def promised(tool: Mapping[str, Any]) -> bool:
    """Whether a tool declares an output schema that clients enforce."""
    return is_object_schema(tool.get("outputSchema"))


def unique(advice: Iterable[Advice], *, most: int = 3) -> Sequence[Advice]:
    """Return at most `most` pieces of advice per rule; the last one has the number of those left out."""
    found: dict[str, list[Advice]] = {}
    for one in dict.fromkeys(advice):
        found.setdefault(one.rule, []).append(one)
    kept: list[Advice] = []
    for some in found.values():
        kept.extend(some[:most])
        if len(some) > most:
            last = kept.pop()
            kept.append(Advice(last.rule, last.where, f"{last.now} (and {len(some) - most} more)", last.change))
    return kept
