"""`mcp-gateway doctor`, as people and programs run it."""

import re

DEAD = '[upstreams.dead]\ncommand = "/no/such/program"\n'


def test_a_healthy_configuration_is_exit_code_0_and_every_part_is_named(command, pictures):
    ended = command("doctor", "--config", pictures("[http]\nport = 0\n"))
    assert (ended.code, ended.err) == (0, "")
    headings = [line for line in ended.out.splitlines() if line and not line.startswith(" ")]
    assert headings[:4] == ["configuration", "profiles", "environment", "upstream pics"]
    assert headings[-4:-1] == ["serve --http", "store", "media"]
    assert headings[-1].startswith("no problems, ")


def test_programs_that_read_json_are_told_nothing_beside_it(command, pictures):
    ended = command("doctor", "--config", pictures("[http]\nport = 0\n"), "--json")
    assert (ended.err, ended.json()["usable"]) == ("", True)


def test_without_an_upstream_that_is_started_nothing_is_waited_for(command, tmp_path):
    path = tmp_path / "off.toml"
    path.write_text('[upstreams.off]\ncommand = "x"\nenabled = false\n')
    assert command("doctor", "--config", path).err == ""


def test_a_problem_is_exit_code_1_with_its_remedy_below_it(command, pictures):
    ended = command("doctor", "--config", pictures(DEAD))
    assert ended.code == 1
    assert ended.err == ""
    lines = ended.out.splitlines()
    at = lines.index("  problem   the command '/no/such/program' was not found")
    assert lines[at + 1] == "            -> fix the path in upstreams.dead.command"
    assert lines[-1].startswith("1 problem, ")


def test_a_configuration_that_cannot_be_used_is_exit_code_2_and_not_the_end(command, tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text("[upstreams.x]\ncomand = 'x'\n")
    ended = command("doctor", "--config", path)
    assert ended.code == 2
    assert "unknown key" in ended.out
    assert "-> did you mean 'command'?" in ended.out
    assert "pictures are fitted" in ended.out


def test_programs_get_every_finding_as_json(command, pictures):
    ended = command("doctor", "--config", pictures(DEAD), "--json")
    told = ended.json()
    assert (ended.code, told["ok"], told["usable"], told["problems"]) == (1, False, True, 1)
    (problem,) = [finding for finding in told["findings"] if finding["level"] == "problem"]
    assert problem == {
        "about": "upstream dead",
        "level": "problem",
        "text": "the command '/no/such/program' was not found",
        "cure": "fix the path in upstreams.dead.command",
    }


def test_names_from_outside_are_harmless_on_a_terminal(command, pictures):
    ended = command("doctor", "--config", pictures("[http]\nport = 0\n"))
    assert "\x1b" not in ended.out
    assert "is shortened to" in ended.out or "does not fit" in ended.out


def test_one_host_can_be_asked_about_and_an_unknown_one_is_refused(command, pictures):
    ended = command("doctor", "--config", pictures(), "--host", "cline", "--json")
    hosts = {host for finding in ended.json()["findings"] for host in finding.get("hosts", ())}
    assert hosts <= {"cline"}
    refused = command("doctor", "--config", pictures(), "--host", "clein")
    assert (refused.code, refused.out) == (2, "")
    assert "did you mean 'cline'?" in refused.err


def test_without_a_configuration_it_says_how_to_get_one(command):
    ended = command("doctor")
    assert ended.code == 2
    assert "mcp-gateway init" in ended.out


def test_on_a_terminal_it_is_coloured_and_folded_and_still_harmless(command, pictures, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    config = pictures(DEAD)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    ended = command("doctor", "--config", config)
    assert "\x1b[1;31m  problem" in ended.out
    assert "\x1b[2J" not in ended.out
    plain = re.sub(r"\x1b\[[0-9;]*m", "", ended.out)
    assert max(map(len, plain.splitlines())) <= 60


def test_a_host_is_a_part_of_its_own_and_a_broken_registration_is_exit_code_1(command, pictures, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    config = pictures("[http]\nport = 0\n")
    assert command("install", "zed", "--config", config).code == 0
    ended = command("doctor", "--config", config)
    assert ended.code == 0
    assert "\nhost zed\n  ok        the gateway is registered in Zed as 'gateway' (" in ended.out
    moved = config.rename(config.with_name("moved.toml"))
    ended = command("doctor", "--config", moved)
    assert ended.code == 1
    assert f"names the configuration {config}, which is not there" in ended.out
    assert f"-> mcp-gateway install zed --config {moved}\n" in ended.out


def test_advice_is_shown_only_where_something_is_to_be_done(command, pictures):
    config = pictures('[gateway]\nprofile = "codex"\n[upstreams.off]\ncommand = "x"\nenabled = false\n')
    ended = command("doctor", "--config", config)
    lines = ended.out.splitlines()
    assert "  ok        not enabled" in lines
    assert "  ok        every host gets the profile 'codex', whatever it is" in lines
    level = ""
    for line in lines:
        level = line[2:10].strip() if line.startswith("  ") and line[2] != " " else level
        assert not (line.strip().startswith("->") and level == "ok"), line
    found = command("doctor", "--config", config, "--json").json()["findings"]
    assert "upstreams.off.enabled = true" in [finding.get("cure") for finding in found]  # programs are told


def test_a_port_that_a_gateway_has_is_well_if_it_has_the_same_configuration(command, pictures, over_http, tmp_path):
    config = pictures()
    process, address = over_http(config)
    port = f"[http]\nport = {address.split(':')[2].split('/')[0]}\n"
    same, other = config, tmp_path / "other.toml"
    text = f"{port}{config.read_text('utf-8')}"
    same.write_text(text, "utf-8")
    other.write_text(text, "utf-8")
    own = _finding(command("doctor", "--config", same, "--json"), "is taken by")
    assert own["level"] == "ok"
    assert f"(process {process.process.pid})" in own["text"]
    anothers = _finding(command("doctor", "--config", other, "--json"), "is taken by")
    assert anothers["level"] == "warning"
    assert f"(process {process.process.pid}), which runs with {same}" in anothers["text"]
    assert f"`mcp-gateway stop --pid {process.process.pid}`" in anothers["cure"]


def _finding(ended, text):
    """The finding that holds the text."""
    return next(one for one in ended.json()["findings"] if text in one["text"])
