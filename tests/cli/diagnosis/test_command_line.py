"""An upstream's command, to be pasted: complete, and without secrets."""

import json

import pytest

from gateway.cli.diagnosis.command_line import command_line
from gateway.config.upstream_settings import UpstreamSettings


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (["-y", "server", "/a folder"], "npx -y server '/a folder'"),
        (["--token=hunter2"], "npx '--token=***'"),
        (["--api-key", "hunter2", "x"], "npx --api-key '***' x"),
        (["--header", "Authorization: Bearer hunter2"], "npx --header 'Authorization: ***'"),
        (["postgresql://me:hunter2@db/x?password=hunter2"], "npx 'postgresql://***@db/x?***'"),
        (["-x", "is hunter2 there"], "npx -x 'is *** there'"),
        (["ghp_hunter2hunter2"], "npx '***'"),
        (["${MY_TOKEN}", "${HOME}/a b"], 'npx "${MY_TOKEN}" "${HOME}/a b"'),
    ],
)
def test_a_command_is_shown_as_it_is_written_without_secrets(tmp_path, written, shown):
    config = tmp_path / "mine.toml"
    config.write_text(f'[upstreams.x]\ncommand = "npx"\nargs = {json.dumps(written)}\n')
    expanded = tuple(one.replace("${MY_TOKEN}", "hunter2") for one in written)
    settings = UpstreamSettings(command="npx", args=expanded, env={"API_KEY": "hunter2"})
    assert command_line("x", settings, config) == shown


def test_arguments_that_are_not_found_in_the_file_are_hidden():
    assert command_line("x", UpstreamSettings(command="npx", args=("hunter2",)), None) == "npx '***'"
    assert command_line("x", UpstreamSettings(url="https://example.com"), None) is None
