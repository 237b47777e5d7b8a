"""Which profile a client gets, and that the answer never depends on luck."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.builtin_profiles import builtin_profiles, load_builtin
from gateway.core.model.caller import Caller
from gateway.core.profiles.host_profiles import resolve_profiles
from gateway.core.profiles.match_profile import able, choose_profile, find_profile, normalise_client_name, specificity
from gateway.core.profiles.profile import Match, ProfileSource, Variant
from gateway.errors import ProfileError

BUILTIN = builtin_profiles()


def profiles(**matches: list[Match]):
    """Small profiles with these matches, in this order, beside the two roots."""
    sources = {name: ProfileSource(match=tuple(match)) for name, match in matches.items()}
    return resolve_profiles({"passthrough": ProfileSource(), "default": ProfileSource(), **sources})


@pytest.mark.parametrize(
    ("name", "normalised"),
    [
        ("claude-code", "claude-code"),
        ("@cline/core", "@cline-core"),
        ("Anthropic/ClaudeAI", "anthropic-claudeai"),
        ("Visual Studio Code", "visual-studio-code"),
        ("Code - OSS", "code---oss"),
        ("Q DEV CLI", "q-dev-cli"),
        ("claude-ai (via mcp-remote 0.1.30)", "claude-ai"),
        ("Claude_Desktop (via mcp-remote 0.1.30) (via Proxy)", "claude-desktop"),
        ("  spaced  ", "spaced"),
        ("openai-mcp (ChatGPT)", "openai-mcp-(chatgpt)"),
        ("", ""),
    ],
)
def test_a_client_name_is_normalised(name, normalised):
    assert normalise_client_name(name) == normalised


@given(st.text())
def test_normalising_twice_changes_nothing_and_any_name_is_taken(name):
    once = normalise_client_name(name)
    assert normalise_client_name(once) == once


def test_a_hostile_name_costs_nothing():
    assert len(normalise_client_name("(via " * 1_000_000)) <= 256


@pytest.mark.parametrize(
    ("client_name", "expected"),
    [
        # What each host was seen to send (clientInfo.name on the wire).
        ("claude-code", "claude-code"),
        ("claude-ai", "claude-desktop"),
        ("claude-ai (via mcp-remote 0.1.30)", "claude-desktop"),
        ("claude-desktop-3p", "claude-desktop"),
        ("local-agent-mode-shell", "claude-desktop"),
        ("codex-mcp-client", "codex"),
        ("gemini-cli-mcp-client", "gemini-cli"),
        ("antigravity-client", "antigravity"),
        ("gemini-cli-mcp-client-v1", "gemini-cli"),
        ("@cline/core", "cline"),
        ("Cline", "cline"),
        ("inspector-cli", "inspector"),
        ("inspector-tui", "inspector"),
        ("inspector-client", "inspector"),
        ("mcp-inspector", "inspector"),
        ("Anthropic/ClaudeAI", "claude-ai"),
        ("Anthropic", "claude-ai"),
        ("Roo Code", "roo-code"),
        ("Kilo Code", "kilo-code"),
        ("Visual Studio Code", "vscode-copilot"),
        ("Visual Studio Code - Insiders", "vscode-copilot"),
        ("Code - OSS", "vscode-copilot"),
        ("github-copilot-developer", "copilot-cli"),
        ("copilot-cli", "copilot-cli"),
        ("kimi-code", "kimi-code"),
        ("crush", "crush"),
        ("openclaw-bundle-mcp", "openclaw"),
        ("JetBrains-IU/copilot-intellij", "copilot-jetbrains"),
        ("JetBrains-JBC/copilot-intellij", "copilot-jetbrains"),
        ("Xcode/copilot-xcode", "copilot-jetbrains"),
        ("cursor-vscode", "cursor"),
        ("windsurf-client", "windsurf"),
        ("Windsurf", "windsurf"),
        ("Zed", "zed"),
        ("jetbrains-ai-assistant-client", "jetbrains-ai"),
        ("continue-client", "continue"),
        ("continue-cli-client", "continue-cli"),
        ("@librechat/api-client", "librechat"),
        ("lmstudio-mcp-bridge", "lm-studio"),
        ("llama-ui-mcp", "llama-ui"),
        ("Cherry Studio", "cherry-studio"),
        ("Jan Streamable Client", "jan"),
        ("goose", "goose"),
        ("goose-cli", "goose"),
        ("goose-desktop", "goose"),
        ("@n8n/n8n-nodes-langchain.mcpClientTool", "n8n"),
        ("Dify", "dify"),
        ("openai-mcp", "chatgpt"),
        ("openai-mcp (ChatGPT)", "chatgpt"),
        ("openai-mcp (Responses API)", "chatgpt"),
        ("Q DEV CLI", "amazon-q"),
        ("dev.warp.Warp-Stable", "warp"),
        ("dev.warp.WarpOss", "warp"),
        ("opencode", "opencode"),
        ("qwen-cli-mcp-client-lab", "qwen-code"),
        ("ai-sdk-mcp-client", "ai-sdk"),
        ("google-adk", "google-adk"),
        # Hosts without a profile of their own, and the SDK's own name, which says nothing.
        ("mcp", "default"),
        ("fastmcp", "default"),
        ("", "default"),
    ],
)
def test_each_known_client_gets_its_built_in_profile(client_name, expected):
    assert choose_profile(BUILTIN, Caller(client_name=client_name), None).profile.name == expected


@pytest.mark.parametrize(
    ("client_name", "user_agent", "expected"),
    [
        ("claude-ai", "Claude-User", "claude-ai"),
        ("claude-ai", "claude-desktop/1", "claude-desktop"),
        ("something new", "Claude-User/1.0", "claude-ai"),
        ("claude-code", "Claude-User", "claude-code"),
    ],
)
def test_where_a_name_is_shared_the_user_agent_tells(client_name, user_agent, expected):
    caller = Caller(client_name=client_name, user_agent=user_agent)
    assert choose_profile(BUILTIN, caller, None).profile.name == expected


def test_a_match_with_a_version_is_for_that_version_alone_and_closer_than_the_name():
    known = profiles(
        measured=[Match(client_name="named", client_version="1.2")],
        later=[Match(client_name="named")],
    )
    chosen = {
        version: choose_profile(known, Caller(client_name="named", client_version=version), None).profile.name
        for version in ("1.2", "1.2.0", None)
    }
    assert chosen == {"1.2": "measured", "1.2.0": "later", None: "later"}


def test_a_client_that_says_nothing_gets_the_default():
    choice = choose_profile(BUILTIN, Caller(), None)
    assert (choice.profile.name, choice.because) == ("default", "the client does not say what it is")


def test_what_is_asked_for_wins_over_the_configuration_which_wins_over_the_client():
    caller = Caller(client_name="claude-code", profile="codex")
    assert choose_profile(BUILTIN, caller, "cline").profile.name == "codex"
    assert choose_profile(BUILTIN, Caller(client_name="claude-code"), "cline").profile.name == "cline"


@pytest.mark.parametrize("configured", [None, "codx"])
def test_an_explicit_choice_that_does_not_exist_is_an_error_with_the_nearest_name(configured):
    caller = Caller(profile=None if configured else "codx")
    with pytest.raises(ProfileError) as caught:
        choose_profile(BUILTIN, caller, configured)
    assert str(caught.value) == "no profile is called 'codx' (did you mean 'codex'?)"


def test_capitals_do_not_matter_but_between_names_that_differ_in_nothing_else():
    assert choose_profile(BUILTIN, Caller(profile="Claude-Code"), None).profile.name == "claude-code"
    assert choose_profile(BUILTIN, Caller(), "CODEX").profile.name == "codex"
    both = profiles(Mine=[], mine=[])
    assert [find_profile(both, name).name for name in ("mine", "Mine", "MINE")] == ["mine", "Mine", "Mine"]


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("vscode", "'vscode-copilot'"),
        ("VSCode", "'vscode-copilot'"),
        ("copilot", "'copilot-cli', 'copilot-cli-responses' or 'copilot-jetbrains'"),
        ("desktop", "'claude-desktop'"),
        ("agents", "'claude-managed-agents', 'openai-agents' or 'openai-agents-chat'"),
    ],
)
def test_names_that_contain_the_given_one_come_first_in_the_hint(given: str, hint: str):
    with pytest.raises(ProfileError) as caught:
        find_profile(BUILTIN, given)
    assert caught.value.remedy == f"did you mean {hint}?"


def test_next_to_nothing_is_contained_in_no_name():
    with pytest.raises(ProfileError) as caught:
        find_profile(profiles(mine=[]), "d")
    assert caught.value.remedy == "there are: default, mine, passthrough"


def test_a_name_like_no_profile_is_answered_with_all_of_them():
    with pytest.raises(ProfileError) as caught:
        find_profile(profiles(mine=[]), "zzzzzz\x1b[31m")
    assert str(caught.value) == "no profile is called 'zzzzzz\\x1b[31m' (there are: default, mine, passthrough)"


def test_the_reason_shows_a_hostile_name_harmlessly():
    choice = choose_profile(BUILTIN, Caller(client_name="evil\x1b[2J"), None)
    assert choice.because == "no profile matches a client that calls itself 'evil\\x1b[2j'"


def test_the_user_agent_counts_where_the_name_fits_nothing():
    known = profiles(webui=[Match(user_agent=r"^open-webui/")], named=[Match(client_name="named")])
    agent = "open-webui/0.9"
    assert choose_profile(known, Caller(client_name="mcp", user_agent=agent), None).profile.name == "webui"
    assert choose_profile(known, Caller(client_name="named", user_agent=agent), None).profile.name == "named"
    assert choose_profile(known, Caller(client_name="mcp", user_agent="else"), None).profile.name == "default"


def test_a_match_with_name_and_agent_needs_both_and_is_closer_than_the_name_alone():
    known = profiles(
        both=[Match(client_name="mcp", user_agent="webui")],
        name=[Match(client_name="mcp")],
    )
    assert choose_profile(known, Caller(client_name="mcp", user_agent="webui/1"), None).profile.name == "both"
    assert choose_profile(known, Caller(client_name="mcp", user_agent="else"), None).profile.name == "name"
    assert choose_profile(known, Caller(client_name="mcp"), None).profile.name == "name"


@pytest.mark.parametrize("flip", [False, True])
def test_the_closer_pattern_wins_wherever_it_stands(flip):
    pairs = {"wide": [Match(client_name="claude*")], "close": [Match(client_name="claude-code*")]}
    known = profiles(**dict(reversed(pairs.items())) if flip else pairs)
    assert choose_profile(known, Caller(client_name="claude-code-x"), None).profile.name == "close"


def test_a_name_without_wildcards_is_closer_than_any_pattern():
    assert specificity(Match(client_name="ab")) > specificity(Match(client_name="a-much-longer-pattern-*"))


def test_of_two_equally_close_profiles_the_later_wins_so_that_users_can_take_a_client_over():
    mine = ProfileSource(extends="claude-code", match=(Match(client_name="Claude Code"),))
    known = resolve_profiles({**load_builtin(), "mine": mine})
    assert choose_profile(known, Caller(client_name="claude-code"), None).profile.name == "mine"


def test_patterns_are_normalised_like_names():
    known = profiles(vscode=[Match(client_name="Visual Studio Code*")])
    assert choose_profile(known, Caller(client_name="Visual Studio Code - Insiders"), None).profile.name == "vscode"


# -- the model behind the host ---------------------------------------------

CHAT = Variant(name="chat", title="Chat", models=("gpt-4*", "qwen*"), sets={"image.show": "line"})
VISION = Variant(name="vision", models=("qwen*-vl*",))
FRAMEWORK = resolve_profiles(
    {
        "passthrough": ProfileSource(),
        "default": ProfileSource(),
        "agents": ProfileSource(match=(Match(client_name="agents"),), variant=(CHAT, VISION)),
        "text": ProfileSource(match=(Match(client_name="hub", model="*-text"), Match(client_name="nobody"))),
        "hub": ProfileSource(match=(Match(client_name="hub"),)),
        "cli": ProfileSource(match=(Match(user_agent="^cli/", model="o1*"),)),
    }
)


def chosen(client: str, model: str | None = None, *, configured_model: str | None = None, **said) -> str:
    caller = Caller(client_name=client, model=model, **said)
    return choose_profile(FRAMEWORK, caller, None, configured_model).profile.name


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (None, "agents"),
        ("gpt-5.5", "agents"),
        ("gpt-4o", "agents-chat"),
        ("GPT-4o", "agents-chat"),
        ("openai/gpt-4o-mini", "agents-chat"),
        ("qwen3-coder", "agents-chat"),
        ("qwen3-vl-plus", "agents-vision"),
        ("", "agents"),
    ],
)
def test_the_variant_for_the_model_takes_the_hosts_place(model, expected):
    assert chosen("agents", model) == expected
    assert choose_profile(FRAMEWORK, Caller(profile="agents"), None, model).profile.name == expected


def test_the_configured_model_counts_more_than_the_one_that_the_host_tells():
    assert chosen("agents", "gpt-5.5", configured_model="gpt-4o") == "agents-chat"
    assert chosen("agents", "gpt-4o", configured_model="gpt-5.5") == "agents"


def test_a_variant_chosen_by_name_stays_whatever_the_model():
    assert chosen("else", "qwen3-vl-plus", profile="agents-chat") == "agents-chat"


def test_the_choice_says_which_model_and_how_it_is_known():
    told = choose_profile(FRAMEWORK, Caller(client_name="agents", model="gpt-4o"), None)
    assert told.because == "the client calls itself 'agents', and the model behind it is 'gpt-4o' (as the host reports)"
    set_by_hand = choose_profile(FRAMEWORK, Caller(), "agents", "gpt-4o")
    assert set_by_hand.because.endswith("(gateway.profile), and the model behind it is 'gpt-4o' (gateway.model)")


def test_a_match_may_ask_for_the_model_too_and_is_then_the_closer_one():
    assert chosen("hub", "big-text") == "text"
    assert chosen("hub", "big-vision") == "hub"
    assert chosen("hub") == "hub"
    assert chosen("x", "o1-mini", user_agent="cli/1") == "cli"
    assert chosen("x", "gpt-4o", user_agent="cli/1") == "default"


def test_what_a_profile_knows_to_be_broken_is_taken_off_what_the_host_declares():
    broken = resolve_profiles({"passthrough": ProfileSource(sets={"features.broken": ["sampling", "roots"]})})
    caller = Caller(capabilities={"sampling": {}, "elicitation": {"form": {}}})
    assert able(caller, broken["passthrough"]).capabilities == {"elicitation": {"form": {}}}
    assert able(caller, BUILTIN["default"]) is caller
