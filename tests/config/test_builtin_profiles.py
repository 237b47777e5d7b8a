"""The built-in profiles: every value with its evidence, no client claimed by two, and the values themselves."""

import tomllib
from datetime import UTC, datetime
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

from gateway.config.builtin_profiles import builtin_profiles, load_builtin, load_profiles, model_profiles
from gateway.config.schema import Settings
from gateway.core.model.caller import Caller
from gateway.core.profiles.host_profiles import PATHS, set_paths, value_at, with_variants
from gateway.core.profiles.match_profile import choose_profile, glob_of, specificity
from gateway.core.tools.instructions import LONGEST
from gateway.errors import ConfigError, ProfileError
from gateway.hosts.simulators.hosts import SIMULATORS

SOURCES = load_builtin()
PROFILES = builtin_profiles()
FACTS = [(name, fact) for name, source in SOURCES.items() for fact in source.fact]


ROOT = Path(__file__).parents[2]
BASES = {"passthrough", "default", "agent-loop", "text-only"}
"""Profiles of no host in particular."""


def recorded() -> set[str]:
    """The hosts whose requests were captured: by the measured matrix, and by what the lab runs."""
    rows = tomllib.loads((ROOT / "tests" / "hosts" / "simulators" / "matrix.toml").read_text("utf-8"))["row"]
    simulated = [SIMULATORS[row["simulator"]] for row in rows]
    programs = [
        tomllib.loads(path.read_text("utf-8"))
        for kind in ("frameworks", "hosts")
        for path in (ROOT / "lab" / kind).glob("*.toml")
    ]
    named = {host.profile or host.name for host in simulated}
    named |= {
        api.get("profile") or program["profile"] for program in programs for api in program.get("apis", {}).values()
    }
    known = [PROFILES[name] for name in named if name in PROFILES]
    return {profile.name if profile.name in SOURCES else profile.lineage[0] for profile in known} - BASES


MEASURED = recorded()
READ_ABOUT = set(SOURCES) - BASES - MEASURED


def test_what_other_profiles_are_based_on_ships_and_so_does_every_host_that_was_measured():
    # docs/hosts/evidence.md, which is generated, lists all that ship; tests/docs/test_hosts_page.py compares.
    assert set(SOURCES) >= BASES | MEASURED
    assert len(MEASURED) >= 19


@pytest.mark.parametrize("name", sorted(READ_ABOUT))
def test_nobody_claims_to_have_measured_what_was_only_read_about(name):
    assert {fact.level for fact in SOURCES[name].fact} <= {
        "source",
        "maintainer",
        "user_report",
        "judgement",
        "unverified",
    }


@pytest.mark.parametrize("name", [name for name in sorted(READ_ABOUT) if not SOURCES[name].match])
def test_a_host_that_cannot_be_told_by_its_name_says_how_it_is_chosen(name):
    assert "chosen explicitly" in " ".join((SOURCES[name].about or "").split())


@pytest.mark.parametrize("name", SOURCES)
def test_nothing_is_set_without_evidence(name):
    source, profile = SOURCES[name], PROFILES[name]
    assert source.sets == {}
    stated = set(set_paths(name, source))
    parent = PROFILES[profile.lineage[0]] if profile.lineage else None
    differing = {path for path in PATHS if parent and value_at(profile, path) != value_at(parent, path)}
    assert differing <= stated
    assert stated <= set(profile.evidence)


@pytest.mark.parametrize(("name", "fact"), FACTS)
def test_evidence_can_be_read_again(name, fact):
    assert len(fact.source.split()) >= 4 or "#" in fact.source, f"{name}: {fact.source!r} leads nowhere"
    assert fact.checked <= datetime.now(tz=UTC).date()
    if fact.level == "measured":
        assert fact.host_version, f"{name}: measured on which version?"
    assert fact.sets, f"{name}: a fact that sets nothing"


@pytest.mark.parametrize("name", SOURCES)
def test_every_profile_says_what_it_is(name):
    assert SOURCES[name].title
    assert len(SOURCES[name].about or "") > 40


VARIANTS = {name: source for name, source in with_variants(SOURCES).items() if name not in SOURCES}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_has_evidence_for_all_that_it_sets_and_says_what_it_is(name):
    source, profile = VARIANTS[name], PROFILES[name]
    assert source.sets == {}
    assert set(set_paths(name, source)) <= set(profile.evidence)
    assert source.title
    for fact in source.fact:
        test_evidence_can_be_read_again(name, fact)


def test_the_models_of_a_hosts_variants_are_told_apart():
    for profile in PROFILES.values():
        globs = [glob for models in profile.variants.values() for glob in models]
        assert len(globs) == len(set(globs)), profile.name
        assert globs == [glob.casefold() for glob in globs]


def test_every_model_api_that_a_built_in_profile_names_is_there():
    assert {profile.output.model_api for profile in PROFILES.values()} <= {None, *model_profiles()}


@cache
def overlap(one: str, other: str) -> bool:
    """Whether some text matches both globs (of `*` and plain characters)."""
    if not one or not other:
        return set(one + other) <= {"*"}
    if one[0] == "*":
        return overlap(one[1:], other) or overlap(one, other[1:])
    if other[0] == "*":
        return overlap(other, one)
    return one[0] == other[0] and overlap(one[1:], other[1:])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a*", "ab", True),
        ("a*", "b*", False),
        ("*b", "a*", True),
        ("a*c", "ab", False),
        ("", "*", True),
        ("a", "a", True),
    ],
)
def test_the_overlap_of_globs_is_found(one, other, expected):
    assert overlap(one, other) is expected


def test_no_client_is_claimed_equally_by_two_profiles():
    claims = [(name, match) for name, source in SOURCES.items() for match in source.match]
    assert all(match.client_name or match.user_agent for _, match in claims)
    named = [(name, match) for name, match in claims if match.client_name]
    assert all(not set(match.client_name or "") & set("?[") for _, match in named)
    for (one, left), (other, right) in combinations(named, 2):
        if one != other and overlap(glob_of(left), glob_of(right)):
            assert specificity(left) != specificity(right), f"{one} and {other}"


# The default for unknown clients, as the design says it.
def test_the_default_is_what_the_design_says():
    default = PROFILES["default"]
    assert {path: value_at(default, path) for path in PATHS} == {
        "order": "text-first",
        "rescue": True,
        "handles": "useful",
        "tools.search": None,
        "audience": "ignore",
        "shown": "unknown",
        "text.max_chars": 40_000,
        "text.merge": True,
        "text.empty": "named",
        "text.beyond": "unknown",
        "image.show": "native",
        "image.types": ("image/png", "image/jpeg"),
        "image.max_edge": 2_000,
        "image.max_bytes": None,
        "image.max_count": 32,
        "image.animation": "first-frame",
        "image.caption": "always",
        "audio.show": "line",
        "audio.types": (),
        "audio.max_bytes": None,
        "audio.max_seconds": None,
        "document.show": "text",
        "document.max_pages": 20,
        "document.max_bytes": None,
        "blob.show": "line",
        "blob.types": (),
        "blob.image_as_image": True,
        "blob.audio_as_audio": False,
        "embedded_text.show": "text",
        "link.show": "line",
        "link.max_count": 4,
        "link.max_bytes": 10_000_000,
        "unknown.show": "line",
        "structured.send": "never",
        "structured.max_chars": None,
        "structured.host": "unknown",
        "error.media": "unflag",
        "error.prefix": True,
        "error.max_chars": None,
        "content_url.show": "never",
        "limits.result_chars": 1_000_000,
        "tools.name_max": 64,
        "tools.host_prefix": "mcp__{server}__",
        "tools.name_chars": "A-Za-z0-9_-",
        "tools.description_max": None,
        "tools.description_required": False,
        "tools.schema_max_bytes": None,
        "tools.refs": "keep",
        "tools.root": "any",
        "tools.max_tools": None,
        "tools.helpers": True,
        "tools.host_files": False,
        "tools.meta": {},
        "tools.own_meta": {},
        "instructions.max_chars": LONGEST,
        "wait.call": None,
        "wait.start": None,
        "wait.list": None,
        "apps.host": "declared",
        "apps.declares": None,
        "apps.shows": None,
        "apps.sessions": None,
        "apps.loads_domains": None,
        "apps.runs_eval": None,
        "apps.runs_data": None,
        "apps.grants": None,
        "apps.data": "structured",
        "apps.calls": "any",
        "apps.embedded": "with-pages",
        "wait.progress_resets": None,
        "instructions.handles": False,
        "wait.tools_list": 5.0,
        "wait.progress_every": 10.0,
        "features.broken": (),
        "output.envelope": False,
        "output.model_api": None,
        "tokens.formulas": ("claude", "openai", "gemini"),
        "tokens.max_result": None,
    }


@pytest.mark.parametrize(
    ("name", "values"),
    [
        (
            "claude-code",
            {
                "order": "kept",
                "text.merge": False,
                "text.max_chars": 45_000,
                "image.types": ("image/png", "image/jpeg", "image/gif", "image/webp"),
                "image.max_edge": 2_000,
                "structured.send": "never",
                "error.media": "unflag",
                "tools.name_max": 128,
                "tools.meta": {"anthropic/maxResultSizeChars": 500_000},
                "tools.own_meta": {"anthropic/alwaysLoad": True},
                "error.max_chars": 10_000,
            },
        ),
        (
            "claude-desktop",
            {
                "shown": "next-turn",
                "limits.result_chars": 1_000_000,
                "structured.send": "never",
                "wait.call": 240,
                "wait.progress_resets": False,
            },
        ),
        ("claude-ai", {"shown": "next-turn", "tools.schema_max_bytes": 16_384, "wait.call": 130}),
        ("claude-api-connector", {"image.show": "line"}),
        (
            "vscode-copilot",
            {
                "order": "kept",
                "link.show": "native",
                "structured.host": "replaces-text",
                "tools.max_tools": 128,
                "text.max_chars": 8_000,
            },
        ),
        ("copilot-cli", {"image.show": "line", "tools.name_max": 128, "structured.host": "beside"}),
        ("copilot-cli-responses", {"image.show": "line", "document.show": "native"}),
        ("kimi-code", {"image.show": "native", "audio.show": "line", "error.media": "keep", "wait.list": 30}),
        ("kimi-code-media", {"order": "kept", "audio.show": "native", "blob.show": "native"}),
        ("crush", {"image.show": "line", "audio.show": "line", "error.prefix": True, "tools.refs": "inline"}),
        ("crush-anthropic", {"image.show": "native", "image.max_count": 1}),
        ("openclaw", {"structured.host": "beside", "tools.host_prefix": "{server}__", "wait.tools_list": 1.0}),
        ("hermes", {"image.show": "file", "audio.show": "file", "structured.host": "beside", "match": ()}),
        ("claude-managed-agents", {"image.show": "line", "match": ()}),
        ("mastra", {"image.show": "native", "structured.host": "if-empty", "match": ()}),
        ("mastra-chat", {"image.show": "line", "error.media": "line"}),
        ("antigravity", {"image.show": "native", "wait.call": 180, "wait.early_answer": 170}),
        ("cursor", {"image.show": "native", "tools.name_max": 60, "structured.host": "replaces-all"}),
        ("zed", {"image.show": "native", "tools.host_prefix": "", "wait.call": 60}),
        ("roo-code", {"image.show": "native", "tools.host_prefix": "mcp--{server}--", "error.prefix": False}),
        (
            "kilo-code",
            {"structured.host": "if-empty", "wait.call": 30, "wait.progress_resets": True, "wait.list": 30},
        ),
        ("continue-cli", {"image.show": "line", "tools.refs": "inline", "tools.root": "object", "wait.list": 60}),
        ("librechat", {"image.max_bytes": 10 * 1024 * 1024, "structured.host": "if-empty"}),
        ("llama-ui", {"audio.show": "native", "audio.types": ("audio/wav", "audio/mpeg"), "wait.call": 300}),
        ("jan", {"text.merge": True, "image.show": "line", "tools.description_max": 1_024}),
        ("n8n", {"text.merge": True, "image.show": "line"}),
        ("dify", {"image.show": "native", "structured.send": "always", "features.broken": ("sampling", "roots")}),
        ("chatgpt", {"image.show": "line", "structured.send": "always"}),
        (
            "amazon-q",
            {"image.show": "line", "tools.name_chars": "a-zA-Z0-9_", "tools.description_required": True},
        ),
        (
            "codex",
            {"order": "kept", "error.media": "keep", "error.prefix": True, "structured.send": "never"},
        ),
        (
            "gemini-cli",
            {"order": "text-first", "document.show": "native", "blob.show": "line", "audio.show": "line"},
        ),
        (
            "cline",
            {
                "image.show": "line",
                "limits.result_chars": 7_500,
                "text.max_chars": 6_500,
                "tools.host_prefix": "{server}__",
            },
        ),
        (
            "opencode",
            {"order": "text-first", "document.show": "native", "structured.host": "if-empty", "text.beyond": "file"},
        ),
        ("qwen-code", {"text.max_chars": 18_000, "error.media": "unflag", "document.show": "text"}),
        ("qwen-code-anthropic", {"document.show": "native", "image.show": "native"}),
        ("qwen-code-text", {"image.show": "line"}),
        ("openai-agents", {"order": "kept", "image.caption": "always", "error.prefix": True, "match": ()}),
        ("openai-agents-chat", {"image.show": "line"}),
        ("langchain", {"document.show": "native", "audio.show": "line", "link.show": "line", "match": ()}),
        ("langchain-chat", {"image.show": "line", "document.show": "text", "match": ()}),
        ("pydantic-ai", {"document.show": "native", "audio.show": "line", "image.max_count": 50}),
        ("pydantic-ai-google", {"audio.show": "native", "audio.types": ("audio/wav",)}),
        ("google-adk", {"image.show": "line", "structured.host": "dumped"}),
        ("strands", {"image.types": ("image/png", "image/jpeg", "image/gif"), "document.show": "text", "match": ()}),
        ("strands-bedrock", {"image.max_count": 20, "image.max_bytes": 3_750_000}),
        ("ai-sdk", {"image.show": "native", "document.show": "text", "wait.start": 1.0}),
        ("ai-sdk-chat", {"image.show": "line"}),
        ("ai-sdk-gemini", {"image.show": "native", "image.types": ("image/png", "image/jpeg", "image/webp")}),
        ("smolagents", {"image.show": "line", "text.merge": True, "match": ()}),
        ("litellm", {"image.show": "line", "match": ()}),
        ("crewai", {"image.show": "line", "text.beyond": "file", "match": ()}),
        ("autogen", {"image.show": "line", "audio.show": "line", "link.show": "line", "match": ()}),
        ("ag2", {"image.show": "line", "document.show": "text", "match": ()}),
        ("ag2-media", {"image.show": "native", "document.show": "native", "error.media": "unflag"}),
        ("llama-index", {"image.show": "line", "structured.host": "dumped", "match": ()}),
        (
            "agent-framework",
            {"image.show": "native", "structured.host": "replaces-all", "error.media": "unflag", "match": ()},
        ),
        ("agent-framework-chat", {"image.show": "line", "document.show": "text", "error.media": "line"}),
        ("haystack", {"image.show": "line", "structured.host": "dumped", "error.prefix": False, "match": ()}),
        ("semantic-kernel", {"image.show": "line", "link.show": "line", "text.empty": "named", "match": ()}),
        ("dspy", {"image.show": "line", "structured.host": "ignored", "match": ()}),
        ("agno", {"image.show": "native", "audio.show": "line", "error.media": "unflag", "match": ()}),
        ("agno-audio", {"audio.show": "native"}),
        (
            "data-designer",
            {"order": "kept", "blob.show": "line", "error.media": "keep", "error.prefix": True, "match": ()},
        ),
    ],
)
def test_what_is_known_of_a_host_is_in_its_profile(name, values):
    assert {path: value_at(PROFILES[name], path) for path in values} == values


ONLY_TEXT = {
    "text.merge": True,
    "text.empty": "named",
    **dict.fromkeys(("image.show", "audio.show", "blob.show", "unknown.show", "link.show", "error.media"), "line"),
    **dict.fromkeys(("document.show", "embedded_text.show"), "text"),
    "structured.send": "never",
}


@pytest.mark.parametrize(
    "name", sorted(name for name, profile in PROFILES.items() if "text-only" in (name, *profile.lineage[:1]))
)
def test_a_profile_based_on_the_one_of_text_lines_and_handles_lets_nothing_but_text_through(name):
    assert {path: value_at(PROFILES[name], path) for path in ONLY_TEXT} == ONLY_TEXT


@pytest.mark.parametrize("name", ["jetbrains-ai"])
def test_what_nothing_is_known_of_is_the_default(name):
    assert SOURCES[name].fact == ()
    assert [path for path in PATHS if value_at(PROFILES[name], path) != value_at(PROFILES["default"], path)] == []


NO_IMAGES = {
    *("claude-api-connector", "claude-managed-agents", "continue", "mcpo", "lm-studio", "cherry-studio", "crush"),
    *("anythingllm", "jan", "n8n", "chatgpt", "amazon-q", "litellm"),
}
IMAGES = {
    *("claude-desktop", "claude-ai", "vscode-copilot", "copilot-jetbrains", "cursor", "windsurf", "zed", "roo-code"),
    *("jetbrains-ai", "librechat", "open-webui", "llama-ui", "goose", "dify", "warp", "inspector"),
}


@pytest.mark.parametrize("name", sorted(NO_IMAGES | IMAGES))
def test_hosts_that_lose_images_or_pour_them_out_as_text_get_a_line_instead(name):
    assert name in READ_ABOUT
    assert (PROFILES[name].image.show == "line") == (name in NO_IMAGES)


def test_the_inspector_is_shown_everything():
    plain, inspector = PROFILES["passthrough"], PROFILES["inspector"]
    of_pages = {"apps.declares", "apps.shows", "apps.loads_domains", "apps.runs_eval"}
    told = {"structured.host", "wait.progress_resets", *of_pages}
    assert {path for path in PATHS if value_at(plain, path) != value_at(inspector, path)} == told


@pytest.mark.parametrize("name", SOURCES)
def test_what_becomes_a_line_can_be_opened(name):
    profile = PROFILES[name]
    lined = [path for path in PATHS if value_at(profile, path) == "line"]
    assert profile.tools.helpers or not lined


def test_users_profiles_stand_beside_the_built_in_ones():
    settings = Settings.model_validate({"profiles": {"mine": {"extends": "codex", "sets": {"image.max_edge": 99}}}})
    profiles = load_profiles(settings)
    assert list(profiles) == [*PROFILES, "mine"]
    assert profiles["mine"].image.max_edge == 99
    assert profiles["mine"].lineage == ("codex", "default", "passthrough")


@pytest.mark.parametrize(
    ("name", "model", "expected"),
    [
        ("claude-code", None, "claude-code"),
        ("codex-mcp-client", None, "codex"),
        ("gemini-cli-mcp-client", None, "gemini-cli"),
        ("opencode", None, "opencode"),
        ("qwen-cli-mcp-client-lab", None, "qwen-code"),
        ("qwen-cli-mcp-client-lab", "qwen3-vl-plus", "qwen-code"),
        ("qwen-cli-mcp-client-lab", "qwen3-coder-plus", "qwen-code-text"),
        ("@cline/core", None, "cline"),
        ("google-adk", None, "google-adk"),
        ("ai-sdk-mcp-client", None, "ai-sdk"),
        ("ai-sdk-mcp-client", "claude-sonnet-4-5", "ai-sdk"),
        ("ai-sdk-mcp-client", "gpt-5.5", "ai-sdk"),
        ("ai-sdk-mcp-client", "gemini-3-pro", "ai-sdk-gemini"),
        ("ai-sdk-mcp-client", "llama3.2-vision:11b", "ai-sdk-chat"),
        ("ai-sdk-mcp-client", "qwen/qwen3-vl-32b", "ai-sdk-chat"),
        ("ai-sdk-mcp-client", "openai/gpt-oss-120b", "ai-sdk-chat"),
        ("mcp", None, "default"),
        ("fastmcp", None, "default"),
    ],
)
def test_a_measured_host_is_known_by_its_name_unless_others_share_it(name, model, expected):
    assert choose_profile(PROFILES, Caller(client_name=name), None, model).profile.name == expected


def test_a_profile_that_is_chosen_explicitly_has_its_variants_too():
    caller = Caller(client_name="fastmcp", profile="pydantic-ai")
    assert choose_profile(PROFILES, caller, None, "gemini-2.5-pro").profile.name == "pydantic-ai-google"
    assert choose_profile(PROFILES, caller, None, "claude-sonnet-4").profile.name == "pydantic-ai"
    on_bedrock = Caller(profile="strands")
    for model in ("us.anthropic.claude-sonnet-5-v1:0", "anthropic.claude-haiku-5", "amazon.nova-pro-v1:0"):
        assert choose_profile(PROFILES, on_bedrock, None, model).profile.name == "strands-bedrock"
    assert choose_profile(PROFILES, on_bedrock, None, "claude-sonnet-5").profile.name == "strands"


def test_hosts_that_are_sent_fewer_pictures_than_an_unknown_one_are_those_of_which_a_number_is_known():
    counts = {name: profile.image.max_count for name, profile in PROFILES.items()}
    most = counts["default"]
    assert isinstance(most, int)
    fewer = {name: count for name, count in counts.items() if isinstance(count, int) and count < most}
    roots = {name: count for name, count in fewer.items() if PROFILES[name].lineage[:1][0] not in fewer}
    guessed = {
        name: fact.level
        for name in roots.keys() & SOURCES.keys()  # variants have their facts in their host's file
        for fact in SOURCES[name].fact
        if "max_count" in fact.sets.get("image", {}) and fact.level == "unverified"
    }
    assert guessed == {}
    assert {"claude-desktop": 8, "strands-bedrock": 20, "crush-anthropic": 1}.items() <= roots.items()


def failure(document) -> str:
    with pytest.raises((ConfigError, ProfileError)) as caught:
        load_profiles(Settings.model_validate(document))
    return str(caught.value)


def test_a_users_profile_cannot_take_a_built_in_name():
    assert failure({"profiles": {"codex": {}}}) == (
        "profiles.codex: a built-in profile has this name "
        '(give yours another name and extends = "codex"; with the same match, yours is chosen)'
    )


def test_a_configured_profile_must_exist():
    assert failure({"gateway": {"profile": "codx"}}) == (
        "gateway.profile: there is no such profile (did you mean 'codex'?)"
    )


def test_a_users_profile_that_does_not_hold_together_is_named():
    assert failure({"profiles": {"mine": {"sets": {"image": {"max": 3}}}}}).startswith("profile 'mine': 'image.max' ")


def test_a_users_profile_cannot_take_the_name_of_a_built_in_variant():
    assert failure({"profiles": {"openai-agents-chat": {}}}).startswith(
        "profiles.openai-agents-chat: a built-in profile has this name"
    )


def test_a_model_api_that_a_users_profile_names_must_exist():
    assert failure({"profiles": {"mine": {"sets": {"output.model_api": "openai-chat"}}}}) == (
        "profiles.mine: output.model_api: no model API is called 'openai-chat' (did you mean 'openai_chat'?)"
    )


def test_a_formula_of_token_counts_that_a_users_profile_names_must_exist():
    assert failure({"profiles": {"mine": {"sets": {"tokens.formulas": ["claude", "gpt-9"]}}}}).startswith(
        "profiles.mine: tokens.formulas: no formula of token counts is called 'gpt-9'"
    )
    assert failure({"profiles": {"mine": {"sets": {"tokens": {"formulas": ["gemini2"]}}}}}).endswith(
        "(did you mean 'gemini_2'?)"
    )


def test_the_first_list_of_tools_is_there_well_before_a_host_gives_up():
    known = {name: profile for name, profile in builtin_profiles().items() if profile.wait.list is not None}
    assert {"claude-code", "codex", "opencode", "cline", "continue-cli", "kilo-code"} <= set(known)
    late = {name: profile.wait for name, profile in known.items() if profile.wait.tools_list > profile.wait.list - 1.5}
    assert late == {}


@pytest.mark.parametrize("name", ["cline", "continue-cli", "kimi-code", "kimi-code-media"])
def test_a_host_that_reads_its_list_once_is_kept_waiting_longer(name):
    wait = PROFILES[name].wait
    assert wait.list is not None
    assert 20 <= wait.tools_list < wait.list


@pytest.mark.parametrize("name", ["qwen-code", "qwen-code-anthropic", "qwen-code-text"])
def test_a_wait_that_fits_a_short_limit_over_http_does_not_count_the_start_of_the_gateway_on_stdio(name):
    wait = PROFILES[name].wait
    assert wait.for_list(0.0) <= 5 - 1.5  # all that Qwen Code grants a server over HTTP, less the other answers
    assert wait.for_list(10.0) == wait.for_list(0.0)  # on stdio it grants 30 s
