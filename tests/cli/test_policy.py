"""`mcp-gateway policy test`, `tools --why`, and what `doctor` says about rules that match nothing."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ended

Command = Callable[..., Ended]

SERVER = Path(__file__).parents[1] / "servers" / "turncoat_stdio.py"
UPSTREAM = f"[upstreams.mail]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(SERVER))}]\n"
RULES = """
[[policy.rules]]
name = "alice-may-send"
effect = "allow"
tools = ["mail__send"]
principals = ["alice"]

[[policy.rules]]
name = "not-to-me"
effect = "deny"
arguments = { required = ["to"], properties = { to = { const = "me" } } }
reason = "Nobody writes to me."

[[policy.rules]]
name = "look-first"
effect = "approve"
destructive = true

[[policy.rules]]
name = "no-finding"
effect = "deny"
tools = ["mail__l*"]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "mcp-gateway.toml"
    path.write_text(UPSTREAM + RULES)
    return path


def test_the_rule_that_decides_is_named(command: Command, config: Path) -> None:
    def verdict(*words: str) -> tuple[int, str, str | None, str, str | None]:
        code, out, _ = command("policy", "test", *words, "--config", config, "--json")
        said = json.loads(out)
        return code, said["list"]["verdict"], said["list"]["rule"], said["call"]["verdict"], said["call"]["rule"]

    assert verdict("mail__send", "--principal", "alice") == (0, "allow", "alice-may-send", "allow", "alice-may-send")
    assert verdict("mail__send") == (1, "approve", "look-first", "approve", "look-first")
    assert verdict("mail__send", "--arguments", '{"to": "me"}') == (1, "approve", "look-first", "deny", "not-to-me")
    reading = ("--annotations", '{"readOnlyHint": true}')
    assert verdict("mail__look", *reading) == (1, "deny", "no-finding", "deny", "no-finding")
    assert verdict("mail__other", *reading) == (0, "allow", None, "allow", None)


def test_the_answer_can_be_read(command: Command, config: Path) -> None:
    code, out, err = command("policy", "test", "mail__send", "--arguments", '{"to": "me"}', "--config", config)
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        "the tool is not known yet, so it counts as one without annotations: destructive, in an open world",
        "list: offered, by the rule 'look-first'",
        "call: denied, by the rule 'not-to-me' (Nobody writes to me.)",
    ]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("mail__send", "--arguments", "{"), "is not JSON"),
        (("mail__send", "--arguments", "[]"), "is not a JSON object"),
        (("send",), "is not a tool of a server"),
        (("other__send",), "the servers are: mail"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_refused(
    command: Command, config: Path, words: tuple[str, ...], complaint: str
) -> None:
    code, _, err = command("policy", "test", *words, "--config", config)
    assert code == 2
    assert complaint in err


def test_tools_tells_what_is_withheld_and_why_if_asked(command: Command, config: Path) -> None:
    listed = command("tools", "--config", config, "--json").json()
    assert "withheld" not in listed
    listed = command("tools", "--config", config, "--why", "--json").json()
    assert listed["withheld"] == {"mail__look": "not allowed by the rule 'no-finding' of the gateway"}
    assert listed["asks"] == {"mail__turn": "look-first", "mail__send": "look-first"}
    shown = command("tools", "--config", config, "--why").out
    assert "mail__look is withheld: not allowed" in shown
    assert "mail__send asks the user first, by the rule 'look-first'" in shown


def test_doctor_finds_rules_that_match_nothing(command: Command, tmp_path: Path) -> None:
    config = tmp_path / "mcp-gateway.toml"
    rules = '[[policy.rules]]\nname = "a"\neffect = "deny"\ntools = ["mail__snd", "mail__se*"]\nupstreams = ["male"]\n'
    config.write_text(UPSTREAM + rules)
    found = command("doctor", "--config", config, "--json").json()["findings"]
    assert [each["text"] for each in found if each["about"] == "policy"] == [
        "policy.rules[0].upstreams: 'male' of the rule 'a' matches no upstream",
        "policy.rules[0].tools: 'mail__snd' of the rule 'a' matches no tool",
    ]


ASK = '[[policy.rules]]\nname = "look-first"\neffect = "approve"\ndestructive = true\n'
HTTP = '[access.tokens.bob]\nhash = "sha256:' + "0" * 64 + '"\n'


def of_approvals(command: Command, config: Path) -> list[str]:
    told = command("config", "check", "--config", config)
    return [line for line in (told.out + told.err).splitlines() if "approval" in line]


def test_a_rule_that_asks_people_who_may_have_no_way_to_answer_is_reported(command: Command, tmp_path: Path) -> None:
    config = tmp_path / "mcp-gateway.toml"
    config.write_text(UPSTREAM + ASK + HTTP)
    (line,) = of_approvals(command, config)
    assert line.startswith("warning: calls by the rule 'look-first' wait for an approval, which people who come over")
    assert '[policy] approval = "two-step"' in line
    found = command("doctor", "--config", config, "--json").json()["findings"]
    (finding,) = [each for each in found if each["about"] == "policy"]
    assert finding["level"] == "warning"
    assert "in a terminal of this machine alone" in finding["text"]

    config.write_text(UPSTREAM + ASK + HTTP + '[policy]\napproval = "terminal"\n')
    assert 'approval = "ask"' in of_approvals(command, config)[0]


@pytest.mark.parametrize(
    "more",
    [ASK, HTTP, ASK + HTTP + '[policy]\napproval = "two-step"\n', ASK.replace("approve", "deny") + HTTP],
    ids=["nobody else comes", "no rule", "the model repeats it", "nobody is asked"],
)
def test_nothing_is_said_of_approvals_where_nobody_is_stuck(command: Command, tmp_path: Path, more: str) -> None:
    config = tmp_path / "mcp-gateway.toml"
    config.write_text(UPSTREAM + more)
    assert of_approvals(command, config) == []


def test_a_host_that_shows_no_question_is_named_with_the_way_to_approve_there(command: Command, tmp_path: Path) -> None:
    config = tmp_path / "mcp-gateway.toml"
    mute = '[profiles.mute]\ntitle = "Mute"\nextends = "default"\nsets.features.broken = ["elicitation"]\n'
    config.write_text(UPSTREAM + ASK + mute)
    found = command("doctor", "--config", config, "--json").json()["findings"]
    (finding,) = [each for each in found if each["about"] == "policy"]
    assert "Mute shows its user no such question" in finding["text"]
    assert "mcp-gateway approvals" in finding["cure"]


TOKENS = """
[access.tokens.bob]
hash = "sha256:{0}"
tools = ["mail__look"]

[access.tokens.carol]
hash = "sha256:{1}"
principal = "carol"

[access.tokens.carol-phone]
hash = "sha256:{2}"
principal = "carol"
upstreams = ["docs"]
tools = ["mial__*"]

[access.tokens.old]
hash = "sha256:{3}"
expires = 2020-01-31
tools = ["mail__snd"]

[access.people.dora]
hash = "{4}"
tools = ["mail__send"]
"""


@pytest.fixture
def shared(config: Path) -> Path:
    """The configuration with tokens and a person."""
    passphrase = f"scrypt:16384:{'a' * 22}:{'b' * 43}"
    config.write_text(UPSTREAM + TOKENS.format(*(f"{number:064x}" for number in range(4)), passphrase))
    return config


def test_what_a_token_does_not_reach_is_withheld_whatever_the_rules_say(command: Command, shared: Path) -> None:
    def tried(tool: str, *words: str) -> list[str]:
        return command("policy", "test", tool, *words, "--config", shared).out.splitlines()[-2:]

    withheld = [
        "list: withheld: it does not exist for the token 'bob'",
        "call: denied: it does not exist for the token 'bob'",
    ]
    assert tried("mail__send", "--principal", "bob") == withheld
    assert tried("mail__send", "--token", "bob") == withheld
    offered = ["list: offered, because no rule matches", "call: allowed, because no rule matches"]
    assert tried("mail__look", "--principal", "bob") == offered
    assert tried("mail__send", "--principal", "dora") == offered
    assert tried("mail__look", "--principal", "dora")[0].endswith("does not exist for the principal 'dora'")
    assert tried("mail__send", "--token", "carol") == offered
    assert tried("mail__send") == offered


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ("--token", "bib"),
            "--token: there is no token 'bib' (did you mean 'bob'? there are: bob, carol, carol-phone, old)",
        ),
        (("--token", "bob", "--principal", "bob"), "give either --token or --principal, not both"),
        (("--principal", "carol"), "reaches different things with each token (name one of its tokens with --token:"),
    ],
)
def test_whoever_is_not_clearly_named_is_an_error(
    command: Command, shared: Path, words: tuple[str, ...], complaint: str
) -> None:
    for tried in (("policy", "test", "mail__send"), ("tools",)):
        code, out, err = command(*tried, *words, "--config", shared)
        assert (code, out) == (2, "")
        assert complaint in err


def test_a_principal_of_an_identity_provider_is_only_subject_to_the_rules(command: Command, shared: Path) -> None:
    code, _, err = command("policy", "test", "mail__look", "--principal", "company:1", "--config", shared)
    assert "only the rules are asked" in err
    assert code == 0


def test_the_tools_of_a_token_are_those_that_a_host_with_it_is_offered(command: Command, shared: Path) -> None:
    listed = command("tools", "--token", "bob", "--config", shared, "--json").json()["tools"]
    names = [each["name"] for each in listed]
    assert [name for name in names if not name.startswith("gateway_")] == ["mail__look"]
    assert "mail__send" in command("tools", "--config", shared).out


def test_what_tokens_name_and_nothing_matches_is_reported(command: Command, shared: Path) -> None:
    found = command("doctor", "--config", shared, "--json").json()["findings"]
    texts = [each["text"] for each in found if each["about"] == "access"]
    assert texts == [
        "over HTTP: 4 tokens, 1 table for a person",
        "access.tokens.old: expired on 2020-01-31, so it is refused",
        "access.tokens.carol-phone.upstreams: 'docs' matches no upstream",
        "access.tokens.carol-phone.tools: 'mial__*' matches no tool",
        "access.tokens.old.tools: 'mail__snd' matches no tool",
    ]
    checked = command("config", "check", "--config", shared)
    assert f"{shared}: can be used, but see below\n" in checked.out
    assert "warning: access.tokens.carol-phone.upstreams: 'docs' matches no upstream (fix the name" in checked.out
    assert "warning: access.tokens.old: expired on 2020-01-31" in checked.out
    assert "mail__snd" not in checked.out  # nothing is started, so its tools are not known


def test_a_rule_for_nobody_is_reported(command: Command, shared: Path) -> None:
    rule = '[[policy.rules]]\nname = "a"\neffect = "deny"\nprincipals = ["carl*", "bob", "local", "do?a"]\n'
    shared.write_text(shared.read_text() + rule)
    checked = command("config", "check", "--config", shared).out
    assert "policy.rules[0].principals: 'carl*' of the rule 'a' matches no principal" in checked
    assert checked.count("matches no principal") == 1


@pytest.mark.parametrize("words", [("doctor",), ("config", "check"), ("policy", "test", "mail__look")])
def test_a_rule_that_can_never_apply_is_named_with_the_one_in_front_of_it(
    command: Command, tmp_path: Path, words: tuple[str, ...]
) -> None:
    path = tmp_path / "mcp-gateway.toml"
    rules = '[[policy.rules]]\nname = "all-of-mail"\neffect = "allow"\nupstreams = ["mail"]\n'
    rules += '[[policy.rules]]\nname = "ask"\neffect = "approve"\ntools = ["mail__*"]\ndestructive = true\n'
    path.write_text(UPSTREAM + rules)
    ended = command(*words, "--config", path)
    why = "policy.rules[1]: the rule 'ask' can never apply: the earlier rule 'all-of-mail' matches whatever it matches"
    assert why in ended.out + ended.err
    path.write_text(UPSTREAM + RULES)
    assert "can never apply" not in "".join(map(str, command(*words, "--config", path)[1:]))
