"""What upstreams tell a model, through a gateway that answers before they are there."""

import json
import sys
from pathlib import Path

import pytest

RAW = Path(__file__).parents[1] / "servers" / "raw_stdio.py"


@pytest.fixture
def raw(tmp_path, monkeypatch):
    """A configuration with a server that says `be kind`, and a cache folder of the test's own."""
    monkeypatch.setenv("MCP_GATEWAY_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "raw.toml"
    upstream = f"[upstreams.raw]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(RAW))}]\n"
    path.write_text(f'[gateway]\ninstructions = "Ask."\n{upstream}')
    return path


def test_it_is_told_once_it_is_known_and_from_the_first_answer_on_in_the_next_run(start, ask, raw):
    process = start("serve", "--config", raw)
    assert process.initialize()["instructions"] == "Ask."
    assert "go there first" in ask(process, "raw__refuse", fails=True)  # a call waits for its upstream
    assert process.initialize()["instructions"] == "Ask.\n\n## raw\nbe kind"
    process.process.stdin.close()
    assert process.wait() == 0
    assert start("serve", "--config", raw).initialize()["instructions"] == "Ask.\n\n## raw\nbe kind"
