"""Variables of hosts in our spelling: what a host would have put in is what the gateway puts in."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.expansion import expand
from gateway.hosts.config_files.variables import FoundVariable, Place, translate_variables

ENVIRON = {"A": "one", "B_2": "two $A ${A}"}
PLACE = Place("/home/me", "/", ENVIRON, "/work/shop")
UNSAID = object()


def translated(text, dialect, place=PLACE):
    found = FoundVariable()
    return translate_variables(text, dialect, place, found), found


def expanded(text, environ=ENVIRON):
    document, problems = expand({"x": text}, environ)
    assert problems == ()
    return document["x"]


@pytest.mark.parametrize(
    ("dialect", "text", "ours"),
    [
        ("none", "${A} $A $${A}", "$${A} $A $$${A}"),
        ("claude-code", "x${A}y${B:-c d}", "x${A:-}y${B:-c d}"),
        ("claude-code", "${env:A} ${} $A", "$${env:A} $${} $A"),
        ("claude-code", "${A:-${B}} ${C:-${B}}", "${A:-}} $${B}"),
        ("gemini-cli", "$A/${B_2}/${C:-d} 5$ $5", "${A:-$A}/${B_2:-}/${C:-d} 5$ $5"),
        ("opencode", "{env:A}-${A}", "${A:-}-$${A}"),
        ("cursor", "${env:A} ${userHome}${/}x ${workspaceFolder} ${A}", "${A:-} /home/me/x /work/shop $${A}"),
        ("cursor", "${workspaceFolderBasename}${pathSeparator}", "shop/"),
        ("vscode", "k=${input:api-key}", "k=${API_KEY:-}"),
        ("vscode", "${input:1st}", "${INPUT_1ST:-}"),
        ("windsurf", "${env:A} ${userHome}", "${A:-} $${userHome}"),
        ("cline", "${env: A } ${env:no-name}", "${A:-} $${env:no-name}"),
        ("any", "${A}${env:B}${C:-d}", "${A:-}${B:-}${C:-d}"),
    ],
)
def test_references_become_ours_and_other_texts_stay_literal(dialect, text, ours):
    assert translated(text, dialect)[0] == ours


@pytest.mark.parametrize("dialect", ["none", "claude-code", "gemini-cli", "opencode", "cursor", "windsurf", "cline"])
@given(parts=st.lists(st.sampled_from(["$", "{", "}", "${", "$${", "x", "A", ":", "-", "Q", " "]), max_size=12))
def test_a_text_that_names_no_variable_that_is_set_is_kept_exactly(dialect, parts):
    text = "".join(parts)
    if dialect == "gemini-cli":  # which looks at braces only where they are balanced around anything
        text = re.sub(r"\$\{[^}]+\}", "", text)
    elif dialect == "claude-code":
        text = re.sub(r"\$\{[A-Za-z_]\w*(:-[^}]*)?\}", "", text)
    if not re.search(r"\$\{[A-Za-z_]\w*(:-[^}]*)?\}", text) or dialect not in ("gemini-cli", "claude-code"):
        assert expanded(translated(text, dialect)[0], {}) == text


@given(parts=st.lists(st.sampled_from(["$", "{", "}", "${A}", "${B_2}", "${C:-d}", "$A", "x", ":-"]), max_size=10))
def test_what_claude_code_would_put_in_is_what_the_gateway_puts_in(parts):
    text = "".join(parts)

    def put_in(reference):
        name, _, default = reference[1].partition(":-")
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            return reference[0]
        return ENVIRON.get(name) or default

    assert expanded(translated(text, "claude-code")[0]) == re.sub(r"\$\{([^}]+)\}", put_in, text)


def test_values_of_every_depth_are_translated_and_keys_are_not():
    value = {"${A}": ["${A}", {"x": "${A}"}, 1, None]}
    assert translated(value, "claude-code")[0] == {"${A}": ["${A:-}", {"x": "${A:-}"}, 1, None]}


def test_what_a_user_has_to_know_is_collected_once():
    _, found = translated(["${env:A} ${env:Z} ${env:Z}", "${input:key}", "${command:x}"], "vscode")
    assert (found.unset, found.asked, found.left) == (["Z"], ["KEY"], ["${command:x}"])
    _, found = translated("${workspaceFolder}", "cursor", Place("/home/me", "/", {}))
    assert found.left == ["${workspaceFolder}"]
    _, found = translated("${A} ${Z:-d}", "claude-code")
    assert found.unset == []
