"""Packages and models that are held back: out of the way while nobody asks for them, and complete once one does."""

import subprocess
import sys

import pytest

from gateway.cli.lean_packages import LEAN


def _run(code: str) -> str:
    begun = f"import sys; from gateway.cli.lean_packages import hold_back; hold_back(); {code}"
    done = subprocess.run([sys.executable, "-c", begun], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_submodule_is_imported_without_the_package_around_it() -> None:
    held = "import mcp.server.lowlevel; print('mcp.server.mcpserver' in sys.modules)"
    assert _run(held) == "False"


@pytest.mark.parametrize(
    "asked",
    [
        "from mcp import ClientSession, types",
        "from mcp.server import MCPServer",
        "import mcp.server.lowlevel; from mcp.server import MCPServer; assert MCPServer.__module__",
        "import mcp; mcp.Client",
        "import mcp.client.streamable_http; from mcp.client import Client",
        "import uvicorn; uvicorn.run; uvicorn.__version__",
        "import uvicorn.server; from uvicorn import Server; assert Server is uvicorn.server.Server",
    ],
)
def test_whoever_asks_for_a_name_gets_it(asked: str) -> None:
    assert _run(f"{asked}; print('there')") == "there"


@pytest.mark.parametrize("package", sorted(LEAN))
def test_a_name_that_does_not_exist_is_an_attribute_error(package: str) -> None:
    missing = f"import {package}; print(hasattr(sys.modules[{package!r}], 'nothing_of_the_kind'))"
    assert _run(missing) == "False"


@pytest.mark.parametrize("package", sorted(LEAN))
def test_a_package_that_is_looked_at_stays_held_back(package: str) -> None:
    looked = (
        f"import {package}; module = sys.modules[{package!r}]; print(hasattr(module, '__wrapped__'), module.__file__)"
    )
    assert _run(f"{looked}; assert type(module).__name__ == '_HeldBack'").startswith("False ")


def test_holding_back_twice_is_the_same_as_once() -> None:
    assert _run("n = len(sys.meta_path); hold_back(); print(len(sys.meta_path) - n)") == "0"


def test_two_threads_that_ask_at_once_both_get_it() -> None:
    code = """
import threading
found, ready = [], threading.Barrier(8)
def ask():
    ready.wait()
    from mcp import ClientSession
    found.append(ClientSession)
threads = [threading.Thread(target=ask) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(found), len(set(found)))
"""
    assert _run(f"exec({code!r})") == "8 1"


def test_a_model_of_the_sdk_is_built_when_it_is_used_and_not_before() -> None:
    code = """
import mcp_types
before = mcp_types.Tool.__pydantic_complete__
read = mcp_types.Tool.model_validate({"name": "draw", "inputSchema": {}})
print(before, read.name, mcp_types.Tool.__pydantic_complete__)
"""
    assert _run(f"exec({code!r})") == "False draw True"


def test_models_of_others_are_built_as_ever() -> None:
    code = """
import mcp_types
from pydantic import BaseModel
class Mine(BaseModel):
    name: str
print(Mine.__pydantic_complete__, dict(BaseModel.model_config))
"""
    assert _run(f"exec({code!r})") == "True {}"


def test_what_is_imported_has_its_source_and_its_data_as_ever() -> None:
    code = """
import importlib.resources, inspect, mcp_types, mcp_types.methods
print("class Tool(" in inspect.getsource(mcp_types.Tool), importlib.resources.files("mcp_types").is_dir())
"""
    assert _run(f"exec({code!r})") == "True True"


def test_threads_that_use_a_model_first_at_the_same_time_all_can() -> None:
    code = """
import threading, mcp_types
found, ready = [], threading.Barrier(8)
def use():
    ready.wait()
    found.append(mcp_types.CallToolResult.model_validate({"content": [{"type": "text", "text": "one"}]}))
threads = [threading.Thread(target=use) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(found), {result.content[0].text for result in found})
"""
    assert _run(f"exec({code!r})") == "8 {'one'}"
