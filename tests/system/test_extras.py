"""The command that adds an extra: for the tool and the place that the gateway was installed with."""

from pathlib import Path

import pytest

from gateway.system.extras import extra_command

CLONE = '{"url": "file:///home/me/the%20clone", "dir_info": {}}'
EDITABLE = '{"url": "file:///src", "dir_info": {"editable": true}}'


@pytest.mark.parametrize(
    ("prefix", "direct_url", "expected"),
    [
        ("/home/me/.local/share/uv/tools/mcp", CLONE, "uv tool install --force '/home/me/the clone[code]'"),
        ("/home/me/.local/share/pipx/venvs/mcp", CLONE, "pipx install --force '/home/me/the clone[code]'"),
        ("/home/me/.venv", EDITABLE, "/py -m pip install --editable '/src[code]'"),
        ("/home/me/.venv", None, "/py -m pip install 'mcp-multimodal-gateway[code]'"),
        ("/home/me/.venv", "no JSON", "/py -m pip install 'mcp-multimodal-gateway[code]'"),
    ],
)
def test_the_command_is_that_of_the_installation(prefix, direct_url, expected):
    assert extra_command("code", Path(prefix), "/py", direct_url) == expected
