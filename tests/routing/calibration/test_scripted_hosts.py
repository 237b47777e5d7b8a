"""Hosts whose models read what really reaches them, and the profiles that calibrating arrives at."""

import re
import secrets
from dataclasses import replace
from datetime import date

import anyio
import pytest

from gateway.config.builtin_profiles import builtin_profiles, load_builtin
from gateway.config.content_settings import MediaSettings
from gateway.content.media import MediaWorkers
from gateway.core.model.caller import Caller
from gateway.core.profiles.calibrate_profile import PARTS, TOOLS
from gateway.core.profiles.host_profiles import resolve_profiles, set_paths, value_at
from gateway.core.profiles.match_profile import choose_profile
from gateway.errors import ConfigError
from gateway.routing.calibration import Calibration, HostWorkspace, KeptProfile, digits, samples

CALLER = Caller(revision="2025-11-25", client_name="Some Host", client_version="1.2.3")
DAY = date(2026, 11, 21)


class Bench:
    """A calibration on its own, and the profiles that it was given to keep."""

    def __init__(self, media, base="default"):
        self.kept = {}
        self.changes = 0
        self.now = 1_000.0
        self.model = None
        self.used = True
        self.base = builtin_profiles()[base]
        around = HostWorkspace(
            base_of=lambda name: builtin_profiles()[name],
            model_of=lambda caller: self.model,
            keep=self.keep,
            changed=self.change,
            today=lambda: DAY,
            clock=lambda: self.now,
        )
        self.calibration = Calibration(media, around)
        self.calibration.open(2_000.0)

    def change(self):
        self.changes += 1

    async def keep(self, name, source, caller):
        self.kept[name] = source
        return KeptProfile(f"/profiles/{name}.toml", self.used)

    async def ask(self, tool, arguments):
        return await self.calibration.call(tool, arguments, CALLER, self.base)

    @property
    def learned(self):
        """What the one profile that was kept sets."""
        ((name, source),) = self.kept.items()
        return dict(set_paths(name, source))


@pytest.fixture(scope="module")
async def media():
    async with MediaWorkers(MediaSettings()) as workers:
        yield workers


@pytest.fixture
def bench(media):
    return lambda base="default": Bench(media, base)


ALL_IMAGES = ["image/png", "image/jpeg", "image/webp", "image/gif"]


@pytest.mark.anyio
async def test_a_host_that_shows_everything(bench, model):
    one = bench()
    with anyio.fail_after(120):
        told = await model("inspector").calibrates(one.ask)
    assert told.startswith("The calibration is done. From now on the profile some-host-1.2.3 is used")
    assert one.learned == {
        "image.show": "native",
        "image.types": ALL_IMAGES,
        "shown": "same-turn",
        "image.max_edge": 4_000,
        "blob.image_as_image": False,
        "document.show": "native",
        "error.media": "keep",
        "structured.host": "beside",
        "text.max_chars": 52_000,
        "audio.show": "native",
        "audio.types": ["audio/wav"],
    }


@pytest.mark.anyio
async def test_a_host_whose_pictures_come_a_turn_late(bench, model):
    one = bench()
    with anyio.fail_after(120):
        await model("claude-desktop").calibrates(one.ask)
    assert one.learned["image.show"] == "native"
    assert one.learned["shown"] == "next-turn"


@pytest.mark.anyio
async def test_a_host_that_shows_text_alone(bench, model):
    one = bench()
    with anyio.fail_after(120):
        await model("cline").calibrates(one.ask)
    learned = one.learned
    assert learned["image.show"] == "line"
    assert learned["audio.show"] == "line"
    assert learned["document.show"] == "text"
    assert learned["error.media"] == "line"
    assert "image.types" not in learned
    assert "shown" not in learned


def guessed(seen, *, next_turn):
    return [f"{secrets.randbelow(100_000):05}" for _ in range(8)]


@pytest.mark.anyio
async def test_a_host_that_reads_the_first_block_alone(bench, model):
    one = bench()
    with anyio.fail_after(120):
        await model("smolagents").calibrates(one.ask)
    assert one.learned["image.show"] == "line"


@pytest.mark.anyio
async def test_who_guesses_everything_gets_no_profile(bench, model):
    one = bench()
    with anyio.fail_after(120):
        told = await model("inspector", reads=guessed).calibrates(one.ask)
    assert "without a profile" in told
    assert one.kept == {}
    (host,) = one.calibration.progress()["hosts"]
    assert host["problem"] == "the model did not report the code in plain text"


@pytest.mark.anyio
async def test_who_guesses_what_it_does_not_see_is_taken_not_to_see_it(bench, model, reads):
    def text_and_guesses(seen, *, next_turn):
        honest = [code for text in seen.texts() for code in re.findall(r"is (\d{5})", text) if not next_turn]
        return [*honest, *guessed(seen, next_turn=next_turn)]

    one = bench()
    with anyio.fail_after(120):
        await model("inspector", reads=text_and_guesses).calibrates(one.ask)
    assert one.learned["image.show"] == "line"
    assert one.learned["audio.show"] == "line"
    assert one.learned["structured.host"] == "ignored"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "claude-code",
            {
                "image.types": ALL_IMAGES,
                "shown": "same-turn",
                "structured.host": "replaces-text",
                "error.media": "unflag",
                "document.show": "text",
                "text.max_chars": 40_000,
            },
        ),
        (
            "codex",
            {"structured.host": "replaces-all", "error.media": "keep", "blob.image_as_image": True},
        ),
        ("gemini-cli", {"document.show": "native", "text.max_chars": 40_000, "blob.image_as_image": False}),
        ("pydantic-ai-google", {"audio.show": "native", "text.max_chars": 52_000}),
    ],
)
@pytest.mark.anyio
async def test_a_measured_host_is_calibrated_to_what_was_measured(bench, model, name, expected):
    one = bench("passthrough")
    with anyio.fail_after(120):
        await model(name).calibrates(one.ask)
    learned = one.learned
    assert {path: learned.get(path) for path in expected} == expected | (
        {"text.max_chars": None} if expected.get("text.max_chars") == 52_000 else {}
    )


@pytest.mark.parametrize("name", ["claude-code", "codex"])
@pytest.mark.anyio
async def test_calibrating_contradicts_no_built_in_profile_of_a_measured_host(bench, model, name):
    one = bench(name)
    with anyio.fail_after(120):
        await model(name).calibrates(one.ask)
    before = builtin_profiles()[name]
    kept = ("image.show", "shown", "audio.show", "structured.send", "text.max_chars", "image.max_count")
    assert {path: one.learned[path] for path in kept if path in one.learned} == {
        path: value_at(before, path) for path in kept if path in one.learned
    }


@pytest.mark.anyio
async def test_the_profile_that_comes_out_is_used_for_this_host_alone(bench, model):
    one = bench()
    one.model = "gpt-5.5"
    with anyio.fail_after(120):
        await model("codex").calibrates(one.ask)
    known = resolve_profiles({**load_builtin(), **one.kept})
    (name,) = one.kept
    caller = replace(CALLER, model="gpt-5.5")
    assert name == "some-host-1.2.3-gpt-5.5"
    assert choose_profile(known, caller, None).profile.name == name
    assert choose_profile(known, replace(caller, client_version="1.2.4"), None).profile.name == "default"
    evidence = known[name].evidence["image.types"]
    assert (evidence.level, evidence.host_version, evidence.checked) == ("measured", "1.2.3", DAY)
    assert "model gpt-5.5" in evidence.source


@pytest.mark.anyio
async def test_the_tools_are_there_while_it_is_open_and_gone_when_it_is_done(bench, model):
    one = bench()
    assert [tool["name"] for tool in one.calibration.tools(CALLER, one.base)] == list(TOOLS)
    with anyio.fail_after(120):
        await model("cline").calibrates(one.ask)
    assert one.calibration.tools(CALLER, one.base) == ()
    assert one.calibration.tools(replace(CALLER, client_name="other"), one.base) != ()
    assert one.changes == 2
    one.now = 3_000.0
    assert one.calibration.tools(replace(CALLER, client_name="other"), one.base) == ()
    refused = await one.ask("gateway_calibrate_show", {})
    assert refused["isError"]
    assert "mcp-gateway calibrate" in refused["content"][0]["text"]


@pytest.mark.anyio
async def test_only_the_host_that_is_named_is_asked(bench):
    one = bench()
    one.calibration.open(2_001.0, "codex")
    assert one.calibration.tools(CALLER, one.base) == ()
    assert one.calibration.tools(CALLER, builtin_profiles()["codex"]) != ()


@pytest.mark.anyio
async def test_opening_it_again_in_another_way_begins_anew(bench):
    one = bench()
    await one.ask("gateway_calibrate_show", {})
    one.calibration.open(2_000.0)
    assert len(one.calibration.progress()["hosts"]) == 1
    one.calibration.open(2_001.0)
    assert one.calibration.progress()["hosts"] == []


@pytest.mark.anyio
async def test_a_profile_that_cannot_be_kept_is_said_so(bench, model):
    one = bench()

    async def refuse(name, source, caller):
        raise ConfigError("the disk is full")

    one.calibration._around = replace(one.calibration._around, keep=refuse)
    with anyio.fail_after(120):
        told = await model("cline").calibrates(one.ask)
    assert "could not be kept: the disk is full" in told
    assert one.calibration.progress()["hosts"][0]["problem"] == "the disk is full"


@pytest.mark.anyio
async def test_a_host_is_over_only_when_its_outcome_is_known(bench, model):
    one = bench()
    phases = []

    async def keep(name, source, caller):
        phases.append(one.calibration.progress()["hosts"][0]["phase"])
        return await one.keep(name, source, caller)

    one.calibration._around = replace(one.calibration._around, keep=keep)
    with anyio.fail_after(120):
        await model("cline").calibrates(one.ask)
    assert phases == ["saving"]
    assert one.calibration.progress()["hosts"][0]["phase"] == "over"


@pytest.mark.anyio
async def test_where_another_profile_is_chosen_explicitly_that_is_said(bench, model):
    one = bench()
    one.used = False
    with anyio.fail_after(120):
        told = await model("cline").calibrates(one.ask)
    assert "Its profile some-host-1.2.3 has to be chosen with --profile" in told
    assert one.calibration.progress()["hosts"][0]["used"] is False


async def shown_text(one, **arguments):
    return (await one.ask("gateway_calibrate_show", arguments))["content"][0]["text"]


@pytest.mark.anyio
async def test_a_part_can_be_shown_again_with_other_codes(bench, reads):
    one = bench()
    first = await one.ask("gateway_calibrate_show", {})
    again = await one.ask("gateway_calibrate_show", {"part": 1})
    assert all(before != after for before, after in zip(first["content"], again["content"], strict=True))
    assert (await shown_text(one)).startswith("Calibration, part 2 of")
    assert (await shown_text(one, part="3")).startswith("Calibration, part 3 of")


@pytest.mark.parametrize("part", [0, 99, "x", True, 1.5, {}])
@pytest.mark.anyio
async def test_a_part_that_there_is_not_is_refused(bench, part):
    refused = await bench().ask("gateway_calibrate_show", {"part": part})
    assert refused["isError"]
    assert "no such part" in refused["content"][0]["text"]


async def said(one, **arguments):
    return (await one.ask("gateway_calibrate_report", arguments))["content"][0]["text"]


@pytest.mark.anyio
async def test_reports_out_of_turn_are_told_what_to_do(bench):
    one = bench()
    assert "Nothing has been shown yet" in await said(one, codes=[])
    await one.ask("gateway_calibrate_show", {})
    assert "Not yet" in await said(one, codes=[], after_user_message=True)
    assert "needs codes" in await said(one)
    assert "Go on" in await said(one, codes=[])


@pytest.mark.anyio
async def test_after_the_last_part_the_user_is_waited_for(bench):
    one = bench()
    shown = await first_part(one)
    answer = await said(one, codes=re.findall(r"is (\d{5})", shown[0]["text"]))
    while "Go on" in answer:
        await one.ask("gateway_calibrate_show", {})
        answer = await said(one, codes=[])
    assert "end your turn" in answer
    assert "wait for the user" in await said(one, codes=["12345"])
    assert "wait for the user" in await shown_text(one)
    assert "is done" in await said(one, codes=[], after_user_message=True)
    assert "is over" in await said(one, codes=[])


async def first_part(one):
    return (await one.ask("gateway_calibrate_show", {}))["content"]


@pytest.mark.parametrize("form", [str, int, "one text"])
@pytest.mark.anyio
async def test_codes_are_taken_as_models_write_them(bench, form):
    one = bench()
    shown = await first_part(one)
    (code,) = re.findall(r"is (\d{5})", shown[0]["text"])
    await said(one, codes=f"I see {code}." if form == "one text" else [form(code)])
    (session,) = one.calibration._hosts.values()
    assert session.session.sight.is_trusted


@pytest.mark.anyio
async def test_more_codes_than_were_asked_for_are_not_looked_at(bench):
    one = bench()
    shown = await first_part(one)
    (code,) = re.findall(r"is (\d{5})", shown[0]["text"])
    wrong = [f"{number:05}" for number in range(10) if f"{number:05}" != code]
    await said(one, codes=[*wrong[: len(PARTS["pictures"])], code])
    (session,) = one.calibration._hosts.values()
    assert not session.session.sight.is_trusted


def test_no_code_is_written_anywhere_but_where_it_has_to_be_seen():
    code = "58213"
    files = [digits.encoded(digits.draw_code(code), kind) for kind in ("PNG", "JPEG", "WEBP", "GIF")]
    files += [digits.vector(code), samples.document(code), samples.sound("51213")]
    for content in files:
        assert code.encode() not in content
        assert b"51213" not in content


def test_the_same_code_is_never_the_same_picture():
    assert digits.encoded(digits.draw_code("12345"), "PNG") != digits.encoded(digits.draw_code("12345"), "PNG")
