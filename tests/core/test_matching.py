"""Which profile a client gets, and that the answer never depends on luck."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.builtin_profiles import builtin_profiles, load_builtin
from gateway.core.matching import choose, find, normalise_client_name, specificity
from gateway.core.model.caller import Caller
from gateway.core.model.profile import Match, ProfileSource
from gateway.core.profiles import resolve_profiles
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
        ("gemini-cli-mcp-client-v1", "gemini-cli"),
        ("@cline/core", "cline"),
        ("Cline", "cline"),
        ("inspector-cli", "inspector"),
        ("inspector-tui", "inspector"),
        ("inspector-client", "inspector"),
        ("mcp-inspector", "inspector"),
        # Hosts without a profile of their own, and the SDK's own name, which says nothing.
        ("mcp", "default"),
        ("opencode", "default"),
        ("qwen-cli-mcp-client-lab", "default"),
        ("ai-sdk-mcp-client", "default"),
        ("google-adk", "default"),
        ("fastmcp", "default"),
        ("Visual Studio Code", "default"),
        ("", "default"),
    ],
)
def test_each_known_client_gets_its_built_in_profile(client_name, expected):
    assert choose(BUILTIN, Caller(client_name=client_name), None).profile.name == expected


def test_a_client_that_says_nothing_gets_the_default():
    choice = choose(BUILTIN, Caller(), None)
    assert (choice.profile.name, choice.because) == ("default", "the client does not say what it is")


def test_what_is_asked_for_wins_over_the_configuration_which_wins_over_the_client():
    caller = Caller(client_name="claude-code", profile="codex")
    assert choose(BUILTIN, caller, "cline").profile.name == "codex"
    assert choose(BUILTIN, Caller(client_name="claude-code"), "cline").profile.name == "cline"


@pytest.mark.parametrize("configured", [None, "codx"])
def test_an_explicit_choice_that_does_not_exist_is_an_error_with_the_nearest_name(configured):
    caller = Caller(profile=None if configured else "codx")
    with pytest.raises(ProfileError) as caught:
        choose(BUILTIN, caller, configured)
    assert str(caught.value) == "no profile is called 'codx' (did you mean 'codex'?)"


def test_a_name_like_no_profile_is_answered_with_all_of_them():
    with pytest.raises(ProfileError) as caught:
        find(profiles(mine=[]), "zzzzzz\x1b[31m")
    assert str(caught.value) == "no profile is called 'zzzzzz\\x1b[31m' (there are: default, mine, passthrough)"


def test_the_reason_shows_a_hostile_name_harmlessly():
    choice = choose(BUILTIN, Caller(client_name="evil\x1b[2J"), None)
    assert choice.because == "no profile is for a client that calls itself 'evil\\x1b[2j'"


def test_the_user_agent_counts_where_the_name_fits_nothing():
    known = profiles(webui=[Match(user_agent=r"^open-webui/")], named=[Match(client_name="named")])
    agent = "open-webui/0.9"
    assert choose(known, Caller(client_name="mcp", user_agent=agent), None).profile.name == "webui"
    assert choose(known, Caller(client_name="named", user_agent=agent), None).profile.name == "named"
    assert choose(known, Caller(client_name="mcp", user_agent="else"), None).profile.name == "default"


def test_a_match_with_name_and_agent_needs_both_and_is_closer_than_the_name_alone():
    known = profiles(
        both=[Match(client_name="mcp", user_agent="webui")],
        name=[Match(client_name="mcp")],
    )
    assert choose(known, Caller(client_name="mcp", user_agent="webui/1"), None).profile.name == "both"
    assert choose(known, Caller(client_name="mcp", user_agent="else"), None).profile.name == "name"
    assert choose(known, Caller(client_name="mcp"), None).profile.name == "name"


@pytest.mark.parametrize("flip", [False, True])
def test_the_closer_pattern_wins_wherever_it_stands(flip):
    pairs = {"wide": [Match(client_name="claude*")], "close": [Match(client_name="claude-code*")]}
    known = profiles(**dict(reversed(pairs.items())) if flip else pairs)
    assert choose(known, Caller(client_name="claude-code-x"), None).profile.name == "close"


def test_a_name_without_wildcards_is_closer_than_any_pattern():
    assert specificity(Match(client_name="ab")) > specificity(Match(client_name="a-much-longer-pattern-*"))


def test_of_two_equally_close_profiles_the_later_wins_so_that_users_can_take_a_client_over():
    mine = ProfileSource(extends="claude-code", match=(Match(client_name="Claude Code"),))
    known = resolve_profiles({**load_builtin(), "mine": mine})
    assert choose(known, Caller(client_name="claude-code"), None).profile.name == "mine"


def test_patterns_are_normalised_like_names():
    known = profiles(vscode=[Match(client_name="Visual Studio Code*")])
    assert choose(known, Caller(client_name="Visual Studio Code - Insiders"), None).profile.name == "vscode"
