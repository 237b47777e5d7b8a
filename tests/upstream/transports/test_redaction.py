from gateway.config.upstream_settings import UpstreamSettings
from gateway.upstream.transports.redaction import Secrets, last_meaningful_line, origin_of, printable


def test_terminal_sequences_and_control_characters_do_not_survive() -> None:
    hostile = "\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x9b2J\x00\u202eback\r\nnext"
    shown = printable(hostile)
    assert "red" in shown
    assert "link" in shown
    assert "title" not in shown
    assert all(char.isprintable() for char in shown)


def test_long_text_is_cut() -> None:
    assert len(printable("x" * 1_000_000, 50)) == 50


def test_the_last_line_of_a_python_traceback_says_why() -> None:
    assert (
        last_meaningful_line(["Traceback (most recent call last):", '  File "x"', "KeyError: 'A'", ""])
        == "KeyError: 'A'"
    )


def test_what_node_prints_after_an_error_is_passed_over() -> None:
    lines = [
        "node:internal/modules/cjs/loader:1080",
        "  throw err;",
        "  ^",
        "",
        "Error: Cannot find module '/x'",
        "    at Module._resolveFilename (node:internal/modules/cjs/loader:1077:15)",
        "  code: 'MODULE_NOT_FOUND',",
        "  requireStack: []",
        "}",
        "",
        "Node.js v20.11.0",
    ]
    assert last_meaningful_line(lines) == "Error: Cannot find module '/x'"


def test_the_log_file_of_npm_is_not_the_reason() -> None:
    lines = [
        "npm error code E404",
        "npm error 404  The requested resource 'x@*' could not be found or you do not have permission to access it.",
        "npm error 404 ",
        "npm error 404 Note that you can also install from a",
        "npm error 404 tarball, folder, http url, or git url.",
        "npm error A complete log of this run can be found in: /x",
    ]
    assert last_meaningful_line(lines) == lines[1]
    lines = ["npm error 404 Not Found", "npm error A complete log of this run can be found in: /x"]
    assert last_meaningful_line(lines) == "npm error 404 Not Found"


def test_noise_is_better_than_silence() -> None:
    assert last_meaningful_line(["", "Node.js v20.11.0"]) == "Node.js v20.11.0"
    assert last_meaningful_line(["", " "]) is None


def test_headers_credentials_in_the_url_and_keys_in_env_are_hidden() -> None:
    web = UpstreamSettings(
        url="https://user:hunter22@example.org/mcp?key=s3cr3t-value&x=1", headers={"Authorization": "Bearer tok-123456"}
    )
    said = "tok-123456 hunter22 s3cr3t-value Bearer tok-123456 user:hunter22"
    hidden = Secrets(web).hide(said)
    assert not any(secret in hidden for secret in ("tok-123456", "hunter22", "s3cr3t"))
    child = UpstreamSettings(command="x", env={"API_TOKEN": "abcdef", "DATA_DIR": "/srv/data"})
    assert Secrets(child).cause("abcdef in /srv/data") == "*** in /srv/data"


def test_only_the_origin_of_a_url_is_shown() -> None:
    assert origin_of("https://user:pw@example.org:8443/secret-path?key=1") == "https://example.org:8443"


def test_what_node_says_after_a_message_does_not_hide_it():
    lines = """node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module '../lib/cli.js'
Require stack:
- /usr/lib/node/bin/npx
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)
    at node:internal/main/run_main_module:28:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: [ '/usr/lib/node/bin/npx' ]
}

Node.js v22.0.0""".splitlines()
    assert last_meaningful_line(lines) == "Error: Cannot find module '../lib/cli.js'"
    lines[10:11] = ["  requireStack: [", "    '/usr/lib/node/bin/npx',", "    '/usr/lib/node/bin/npm'", "  ]"]
    assert last_meaningful_line(lines) == "Error: Cannot find module '../lib/cli.js'"
    lines[4:7] = ["TypeError [ERR_X]: no such folder", "Did you mean /y?"]
    assert last_meaningful_line(lines) == "TypeError [ERR_X]: no such folder"
    assert last_meaningful_line([*lines, "give it a folder"]) == "give it a folder"
    assert last_meaningful_line(["it said no", "    at once"]) == "it said no"
