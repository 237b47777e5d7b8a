"""What results and lists of tools cost, on the command line."""

import json

RESULT = {"content": [{"type": "text", "text": "word " * 400}], "structuredContent": {"n": 1}}


def test_explain_shows_both_sides_for_each_model_of_a_host(command, tmp_path):
    file = tmp_path / "result.json"
    file.write_text(json.dumps(RESULT))
    ended = command("explain", file, "--profile", "cursor", "--tokens")
    assert ended.code == 0
    said = ended.out.split("\ntokens:\n")[1].split("\n\n")[0].splitlines()
    assert [line.split(":")[0].split()[0] for line in said] == ["Claude", "GPT-5.4", "Gemini"]
    assert all(line.count("about ") == 2 and "(given: about " in line for line in said)
    assert "tokens:" not in command("explain", file, "--profile", "all").out
    costs = json.loads(command("explain", file, "--profile", "claude-code", "--json").out)["tokens"]
    assert set(costs) == {"claude"}
    given = costs["claude"]["given"]
    assert given["total"] == given["text"] < 20, "its model would read the structured content, in place of the text"
    file.write_text(json.dumps({"content": RESULT["content"]}))
    given = json.loads(command("explain", file, "--profile", "claude-code", "--json").out)["tokens"]["claude"]["given"]
    assert given["total"] == given["text"] > 300


def test_a_host_of_which_nothing_is_known_says_so(command, tmp_path):
    file = tmp_path / "result.json"
    file.write_text(json.dumps(RESULT))
    said = command("explain", file, "--profile", "passthrough", "--tokens").out
    assert "the models of this host are not known: set gateway.model, or tokens.formulas of its profile" in said
    config = tmp_path / "mcp-gateway.toml"
    config.write_text('[gateway]\nmodel = "gemini-2.5-pro"\n')
    assert (
        "Gemini 2: about " in command("explain", file, "--profile", "passthrough", "--tokens", "--config", config).out
    )


def test_the_cost_of_a_call_and_of_each_list_is_shown_if_asked_for(command, pictures):
    config = pictures()
    called = command("call", "pics__fail", "--config", config, "--profile", "claude-code", "--tokens")
    assert "Claude 4.7 and later: about " in called.out
    listed = command("tools", "--config", config, "--tokens")
    lines = listed.out.splitlines()
    assert lines[-1].startswith("in total: about ")
    assert any(line.startswith("pics: about ") for line in lines)
    assert "in total" not in command("tools", "--config", config).out
    costs = json.loads(command("tools", "--config", config, "--json").out)["tokens"]
    assert costs["total"] == sum(costs["upstreams"].values()) > costs["upstreams"]["pics"] > 0
