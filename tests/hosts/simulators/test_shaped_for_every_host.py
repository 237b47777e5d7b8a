"""Every measured result, and some composed ones, shaped for every simulated host: each cell of the matrix is right.

Shaping is the real thing (workers, a store); hosts whose profiles are equal share its results, and so does media work
that is asked for twice.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anyio
import pytest

from gateway.config.builtin_profiles import builtin_profiles
from gateway.config.content_settings import MediaSettings
from gateway.config.store_settings import StoreSettings
from gateway.content.media import MediaWorkers
from gateway.content.shaping import Shaper
from gateway.content.shaping.shaper import Shaped
from gateway.content.store import MemoryStore
from gateway.core.model.caller import Caller
from gateway.core.model.effects import MediaEffect, MediaOutcomeT
from gateway.core.profiles.host_profiles import PATHS, narrow, value_at
from gateway.core.profiles.match_profile import choose_profile
from gateway.core.profiles.profile import Profile
from gateway.hosts.simulators.host import RASTER, SimulatedHost
from gateway.hosts.simulators.hosts import SIMULATORS
from gateway.hosts.simulators.readable_text import words
from gateway.hosts.simulators.results import PDF
from gateway.hosts.simulators.seen import Seen, SeenAudio, SeenDocument
from gateway.hosts.simulators.verdict import judge_seen
from tests.hosts.simulators.lab import MEDIA
from tests.hosts.simulators.lab import RESULTS as MEASURED
from tests.hosts.simulators.lab import SHAPED as RESULTS

HOSTS = {name: host for name, host in SIMULATORS.items() if not host.for_people}
ANONYMOUS = {name: host for name, host in HOSTS.items() if host.client_info["name"] in ("mcp", "fastmcp")}
"""Hosts that cannot be told by their names."""
HAVE_TO_BE_NAMED = {"ag2", "autogen", "autogen-tools", "haystack", "llama-index", "semantic-kernel"}
"""Those of them that an image block harms, where others of the same name show it: `default` is right for the latter."""
OTHER_THAN_RESULTS = ("tools.meta", "tools.name", "wait.", "instructions.", "features.", "tools.max", "tools.host")
SECONDS = 240
_ESCAPED = re.compile(r"\\u[0-9a-f]{4}")
"""A character as JSON writes it that is to be ASCII: it is none of a word's (see `words`), escaped or not."""

Key = tuple[str, str]


class Remembering:
    """Media workers, each piece of work done once."""

    def __init__(self, media: MediaWorkers) -> None:
        self._media = media
        self._done: dict[Any, Any] = {}

    async def run(self, effect: MediaEffect[MediaOutcomeT]) -> MediaOutcomeT:
        key = repr(replace(effect, key="", data=hashlib.sha256(repr(effect.data).encode()).hexdigest()))
        if key not in self._done:
            try:
                self._done[key] = await self._media.run(effect)
            except Exception as error:  # whatever it was, it is the same the next time
                self._done[key] = error
        outcome = self._done[key]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def profile_for(host: SimulatedHost, *, named: bool = True) -> Profile:
    caller = Caller(
        revision=host.revision,
        client_name=str(host.client_info["name"]),
        user_agent=host.user_agent,
        profile=host.profile if named else None,
    )
    return narrow(choose_profile(builtin_profiles(), caller, None).profile, host.revision)


def values_of(profile: Profile) -> str:
    """What a profile says about results: those with equal values shape alike."""
    return repr([(path, value_at(profile, path)) for path in PATHS if not path.startswith(OTHER_THAN_RESULTS)])


PROFILES = {
    **{(name, True): profile_for(host) for name, host in HOSTS.items()},
    **{(name, False): profile_for(host, named=False) for name, host in ANONYMOUS.items()},
}


async def _shape_all() -> dict[Key, Shaped]:
    shaped: dict[Key, Shaped] = {}
    with anyio.fail_after(SECONDS):
        async with MediaWorkers(MediaSettings()) as media:
            shaper = Shaper(MemoryStore(StoreSettings()), Remembering(media))
            for profile in {values_of(profile): profile for profile in PROFILES.values()}.values():
                for case, result in RESULTS.items():
                    shaped[values_of(profile), case] = await shaper.shape(result, profile, owner="lab")
    return shaped


@pytest.fixture(scope="module")
def shaped() -> Mapping[Key, Shaped]:
    return anyio.run(_shape_all)


def seen_by(host: SimulatedHost, sent: Shaped, profile: Profile) -> Seen:
    """With the tool as it is offered: a schema of its output is dropped together with structured content."""
    keeps = profile.structured.send == "always"
    return host.see(sent.result, {"name": "give", "outputSchema": {"type": "object"}} if keeps else {"name": "give"})


def is_lossy(original: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Whether something that the tool returned does not leave the gateway as it was: a part of a text, the bytes of an
    image, a block of another kind, structured content."""
    if "structuredContent" in original and "structuredContent" not in result:
        return True
    texts = "\n".join(block["text"] for block in result["content"] if block["type"] == "text")
    data = [block.get("data") for block in result["content"]]
    return not all(
        block["text"] in texts
        if block["type"] == "text"
        else block["data"] in data
        if block["type"] == "image"
        else block in result["content"]
        for block in original["content"]
    )


def check(name: str, case: str, shaped: Mapping[Key, Shaped], *, named: bool) -> None:
    host, profile = HOSTS[name], PROFILES[name, named]
    original, sent = RESULTS[case], shaped[values_of(profile), case]
    seen = seen_by(host, sent, profile)
    verdict = judge_seen(original, seen, host)
    assert verdict.problems == ()
    assert not verdict.is_empty
    assert not seen.flagged or original.get("isError")
    assert all(image.picture and image.media_type in RASTER for image in seen.images)
    if case != "res_pdf":  # a document that holds nothing but a picture is shown as pages
        assert len(seen.images) == verdict.expected or not host.shows_images
    assert sent.notes or not is_lossy(original, sent.result)
    # What leaves the gateway arrives whole: the host itself cuts nothing, and moves nothing into a file.
    read = words(_ESCAPED.sub(" ", seen.text.replace("\\n", "\n")))
    assert [text for block in sent.result["content"] if (text := block.get("text")) and words(text) not in read] == []


@pytest.mark.parametrize("case", RESULTS)
@pytest.mark.parametrize("name", HOSTS)
def test_every_cell_is_right(name: str, case: str, shaped: Mapping[Key, Shaped]) -> None:
    check(name, case, shaped, named=True)


@pytest.mark.parametrize("case", RESULTS)
@pytest.mark.parametrize("name", sorted(set(ANONYMOUS) - HAVE_TO_BE_NAMED))
def test_every_cell_is_right_where_nobody_names_the_profile(name: str, case: str, shaped: Mapping[Key, Shaped]) -> None:
    check(name, case, shaped, named=False)


@pytest.mark.parametrize("case", RESULTS)
@pytest.mark.parametrize("name", sorted(HAVE_TO_BE_NAMED))
def test_where_a_profile_has_to_be_named_images_alone_are_why(
    name: str, case: str, shaped: Mapping[Key, Shaped]
) -> None:
    sent = shaped[values_of(PROFILES[name, False]), case].result["content"]
    if all(block["type"] == "text" for block in sent):
        check(name, case, shaped, named=False)
    else:
        assert {block["type"] for block in sent} <= {"text", "image"}
        assert judge_seen(
            RESULTS[case],
            seen_by(HOSTS[name], shaped[values_of(PROFILES[name, False]), case], PROFILES[name, False]),
            HOSTS[name],
        ).problems
    assert "chosen explicitly" in " ".join(PROFILES[name, True].about.split())


@pytest.mark.parametrize("name", [name for name, host in HOSTS.items() if host.can_show(PDF)])
@pytest.mark.parametrize("case", ["res_pdf", "pdf_with_text", "every_kind"])
def test_a_document_is_a_document_where_the_host_shows_one(name: str, case: str, shaped: Mapping[Key, Shaped]) -> None:
    profile = PROFILES[name, True]
    seen = seen_by(HOSTS[name], shaped[values_of(profile), case], profile)
    assert [part.media_type for part in seen.parts if isinstance(part, SeenDocument)] == [PDF]


@pytest.mark.parametrize("name", [name for name, host in HOSTS.items() if not host.can_show(PDF)])
def test_elsewhere_the_text_of_a_document_is_read(name: str, shaped: Mapping[Key, Shaped]) -> None:
    profile = PROFILES[name, True]
    for case in ("pdf_with_text", "every_kind"):
        text = seen_by(HOSTS[name], shaped[values_of(profile), case], profile).text
        assert "PROSE of the first sounding" in text
        assert "PROSE of the second sounding" in text


@pytest.mark.parametrize("name", [name for name, host in HOSTS.items() if host.can_show("audio/wav")])
def test_sound_is_heard_where_the_host_lets_its_model_hear(name: str, shaped: Mapping[Key, Shaped]) -> None:
    profile = PROFILES[name, True]
    seen = seen_by(HOSTS[name], shaped[values_of(profile), "every_kind"], profile)
    assert [part.data for part in seen.parts if isinstance(part, SeenAudio)] == [MEDIA["wav"]]


@pytest.mark.parametrize("name", [name for name, host in HOSTS.items() if not host.shows_images])
def test_an_image_that_nobody_sees_is_named_with_its_handle(name: str, shaped: Mapping[Key, Shaped]) -> None:
    profile = PROFILES[name, True]
    sent = shaped[values_of(profile), "mixed"]
    assert [block["type"] for block in sent.result["content"] if block["type"] != "text"] == []
    assert len(set(re.findall(r"handle (img_\w+)", seen_by(HOSTS[name], sent, profile).text))) == 2


def test_hosts_with_equal_profiles_share_what_was_shaped() -> None:
    distinct = {values_of(profile) for profile in PROFILES.values()}
    assert len(distinct) < len(PROFILES)


@pytest.mark.parametrize("name", HOSTS)
def test_without_the_gateway_something_is_lost_at_every_host(name: str) -> None:
    host = HOSTS[name]
    assert any(judge_seen(RESULTS[case], host.see(RESULTS[case], None), host).problems for case in MEASURED)
