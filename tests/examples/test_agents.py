"""The agents of examples/agents, each as a process of its own, against the stand-ins of the model APIs."""

import importlib.util
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import NoReturn

import pytest

from gateway.config.builtin_profiles import builtin_profiles
from gateway.testing.model_apis import seen
from gateway.testing.model_apis.server import ModelServer, model_server
from lab.serve_models import serve_models

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "examples" / "agents" / "mcp-gateway.toml"
OLD_CLIENTS = Path(sys.prefix) / "clients" / Path(sys.executable).relative_to(sys.prefix)
LIMIT = 120
APIS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "gemini": "/models/gemini-3-pro:generateContent",
}


@pytest.fixture(scope="module")
def address() -> Generator[tuple[str, ModelServer]]:
    """The stand-ins, served in a thread, and the application with what it was asked."""
    app = model_server()
    with serve_models(app) as url:
        yield url, app


@pytest.fixture
def models(address: tuple[str, ModelServer]) -> tuple[str, ModelServer]:
    address[1].requests.clear()
    return address


@pytest.fixture(scope="module")
def served() -> Generator[str]:
    """The url of a gateway with the configuration of the agents, in a process of its own."""
    command = [sys.executable, "-m", "gateway", "serve", "--config", str(CONFIG), "--http", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            said = next(line for line in process.stderr if line.startswith("listening on "))
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield said.split()[2]
        finally:
            process.terminate()
            process.wait(LIMIT)


def environment(url: str = "", **more: str) -> dict[str, str]:
    bases = {"OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url, "GOOGLE_GEMINI_BASE_URL": url}
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "no-key")
    return {**os.environ, **bases, **keys, "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1", **more}


def run(name: str, variables: dict[str, str], python: Path | str = sys.executable) -> str:
    command = [str(python), str(ROOT / "examples" / "agents" / f"{name}.py")]
    done = subprocess.run(
        command, cwd=ROOT, env=variables, capture_output=True, text=True, encoding="utf-8", timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("api", APIS)
def test_a_loop_on_an_api_shows_its_model_the_image(models: tuple[str, ModelServer], api: str) -> None:
    url, app = models
    assert run(api, environment(url)).startswith("I see 1 image: image/png 960x600")
    first, last = app.requests
    assert last.path.endswith(APIS[api])
    model = {"model": "gemini-3-pro"} if api == "gemini" else {}
    assert [one.media_type for one in seen(api, {**last.json, **model})] == ["image/png"]
    assert len(last.body) > len(first.body)


@pytest.mark.parametrize(("framework", "package"), [("pydantic_ai", "pydantic_ai"), ("openai_agents", "agents")])
def test_a_framework_with_the_gateway_as_its_server_shows_its_model_the_image(
    models: tuple[str, ModelServer], served: str, missing: Callable[[str, str], NoReturn], framework: str, package: str
) -> None:
    if importlib.util.find_spec(package) is None:
        missing(package, "run `make setup`, and the tests with .venv/bin/python")
    answer = run(f"with_{framework}", environment(models[0], GATEWAY_URL=served))
    assert answer.startswith("I see 1 image: image/png 960x600")


def test_langchain_with_the_gateway_as_its_server_shows_its_model_the_image(
    models: tuple[str, ModelServer], served: str, missing: Callable[[str, str], NoReturn]
) -> None:
    if not OLD_CLIENTS.exists():
        missing("the environment of LangChain", "run `make setup`, and the tests with .venv/bin/python")
    answer = run("with_langchain", environment(models[0], GATEWAY_URL=served), OLD_CLIENTS)
    assert answer.startswith("I see 1 image: image/png 960x600")
    assert [one.media_type for one in seen("openai_responses", models[1].requests[-1].json)] == ["image/png"]


def test_a_photo_goes_by_its_handle_into_the_program_s_own_tool_and_comes_back_annotated() -> None:
    assert "I see 1 image: 320x200" in run("photo_by_handle", environment())


NAMED = {"ag2", "agent_framework", "agno", "autogen", "crewai", "dspy", "haystack", "langchain_mcp", "langgraph"} | {
    *("llama_index", "mcp_use", "semantic_kernel")
}
"""Frameworks that cannot be told by their names, and are not served well as unknown clients."""


@pytest.mark.parametrize("framework", sorted(NAMED))
def test_an_agent_names_the_profile_of_its_framework_and_the_proxy_where_that_shows_no_pictures(framework: str) -> None:
    program = (ROOT / "examples" / "agents" / f"with_{framework}.py").read_text("utf-8")
    (path,) = re.findall(r"""8484/mcp/(?:\{')?([a-z0-9-]+)""", program)
    assert "{GATEWAY}" not in program, "$GATEWAY_URL is taken as it is: the lab names no profile in two of its settings"
    shows_pictures = builtin_profiles()[path].image.show == "native"
    assert shows_pictures != ("$OPENAI_BASE_URL is the address of the proxy" in program)


@pytest.mark.parametrize("framework", sorted(NAMED))
def test_what_an_agent_needs_is_named_with_bounds(framework: str) -> None:
    file = ROOT / "examples" / "agents" / "requirements" / f"{framework.replace('_', '-')}.in"
    lines = [line for line in file.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    assert all("<" in line for line in lines)
