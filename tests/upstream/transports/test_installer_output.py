"""Installers say more after a failure than the failure."""

import pytest

from gateway.upstream.transports.installer_output import AbsentPackage, LastLines, absent_package, is_notice
from gateway.upstream.transports.redaction import last_meaningful_line

UPDATE = [
    "npm notice",
    "npm notice New minor version of npm available! 11.19.1 -> 11.21.2",
    "npm notice Changelog: https://example.com/npm/v11.21.2",
    "npm notice To update run: npm install -g npm@11.21.2",
    "npm notice",
]
ABSENT = (
    "npm error 404  The requested resource 'sevrer@*' could not be found or you do not have permission to access it."
)

NOTICES = [
    *UPDATE[:-1],
    "npm warn deprecated glob@7.2.3: Glob versions prior to v9 are no longer supported",
    "npm WARN exec The following package was not found and will be installed: x@1.0.0",
    "[notice] A new release of pip is available: 24.0 -> 25.3",
    "[notice] To update, run: pip install --upgrade pip",
    "hint: `x` is available as a package with another name",
    "warning: Failed to hardlink files; falling back to full copy.",
    "Installed 31 packages in 12ms",
    "Downloading numpy (16.1MiB)",
    "   Building x",
    "Download https://example.com/x.tgz",
    "Resolving dependencies",
    "See 'docker run --help'.",
    "Run 'docker run --help' for more information",
    "go: downloading example.com/x v1.2.3",
]

OTHERS = [
    "npm error code E404",
    "KeyError: 'API_KEY'",
    "warning: the key is missing",
    "Downloading the model failed: no space left on device",
    "Installed plugins do not match",
    "notice: this server needs a token",
]


@pytest.mark.parametrize("line", NOTICES)
def test_a_notice_of_an_installer_is_known(line: str) -> None:
    assert is_notice(line)


@pytest.mark.parametrize("line", OTHERS)
def test_what_a_server_says_is_not_a_notice(line: str) -> None:
    assert not is_notice(line)


def test_notices_take_no_room_from_other_lines() -> None:
    lines = LastLines(4)
    for line in ("npm error code E404", ABSENT, *UPDATE, *UPDATE, "npm error A complete log of this run can be found"):
        lines.add(line)
    assert last_meaningful_line(lines.lines) == ABSENT
    assert not any(is_notice(line) for line in lines.lines)


def test_notices_are_better_than_silence() -> None:
    lines = LastLines(4)
    for line in (*NOTICES, ""):
        lines.add(line)
    assert lines.lines == NOTICES[-4:]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (ABSENT, "sevrer"),
        ("npm error 404  '@scope/sevrer@*' is not in this registry.", "@scope/sevrer"),
        ("npm ERR! 404  'sevrer@*' is not in this registry.", "sevrer"),
        ("npm error notarget No matching version found for sevrer@99.9.9.", "sevrer@99.9.9"),
        ('error Couldn\'t find package "sevrer" on the "npm" registry.', "sevrer"),
        (" ERR_PNPM_FETCH_404  GET https://example.com/sevrer: Not Found - 404", None),
        ("error: GET https://example.com/sevrer - 404", None),
        ("error: npm package 'sevrer' does not exist.", "sevrer"),
        ("  cause: Because sevrer was not found in the package registry and you require sevrer, we can", "sevrer"),
        ("  ╰─▶ Because there is no version of sevrer==99.9 and you require sevrer==99.9, we can", "sevrer==99.9"),
        ("ERROR: No matching distribution found for sevrer", "sevrer"),
        ("docker: Error response from daemon: pull access denied for a/sevrer, repository does not exist", "a/sevrer"),
        ("docker: Error response from daemon: manifest for a/b:9 not found: manifest unknown", "a/b:9"),
    ],
)
def test_a_package_that_does_not_exist_is_known_by_the_line_that_names_it(line: str, name: str | None) -> None:
    assert absent_package(["first", line, "npm error 404", "advice"]) == AbsentPackage(line, name)


@pytest.mark.parametrize("line", [*NOTICES, *OTHERS[1:], "HTTP 404 Not Found", "Error: file not found: a.txt"])
def test_other_lines_name_no_absent_package(line: str) -> None:
    assert absent_package([line]) is None


@pytest.mark.parametrize(
    "words",
    [
        "a",
        "YN0035:",
        "module a: ",
        "error: No version matching ",
        "reading manifest a in b: ",
        "npm error 404 '",
        "Because ",
    ],
)
def test_long_lines_full_of_half_messages_are_read_in_linear_time(words: str) -> None:
    # With a pattern that looks to the end of the line from each of its characters, this takes hours.
    line = (words * 300_000)[:300_000]
    assert absent_package([line]) is None
    assert not is_notice(line)
