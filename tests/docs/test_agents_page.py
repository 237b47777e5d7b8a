"""The loop on docs/agents.md runs as it stands, and the page names every error and option that there is."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gateway
from gateway import errors
from gateway.testing.model_apis.server import model_server
from lab.serve_models import serve_models

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "agents.md").read_text("utf-8")


LOOPS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("code", LOOPS, ids=["async", "sync", "strict"])
def test_the_loop_shows_its_model_an_image(code: str, tmp_path: Path) -> None:
    server = ROOT / "tests" / "servers" / "agent_stdio.py"
    config = f'[upstreams.charts]\ncommand = "${{MCP_GATEWAY_PYTHON}}"\nargs = ["{server.as_posix()}"]\n'
    (tmp_path / "mcp-gateway.toml").write_text(config, "utf-8")
    with serve_models(model_server()) as address:
        more = {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "no-key", "NO_PROXY": "127.0.0.1"}
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, **more, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.stdout.startswith("I see 1 image: image/png"), done.stderr


def test_the_page_names_every_option_and_every_error() -> None:
    options = inspect.signature(gateway.Toolset.__init__).parameters
    assert {name for name in options if f"`{name}`" not in PAGE} == {"self", "source"}
    own = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and errors.ToolsetError in kind.__bases__
    }
    assert own
    assert [name for name in own if f"| `{name}` |" not in PAGE] == []
