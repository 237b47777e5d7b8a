"""The bundled examples: each one's own check passes under the name that it has in the wheel, and so in the clone."""

import ast
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ("charts", "daylight", "documents", "sounds")
CHECKED = (*EXAMPLES, "analyze_photo", "screenshots")


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=180)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples as they are in the wheel: a package of another name, and nothing else around it."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "examples", folder / "gateway_examples", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.parametrize("name", CHECKED)
def test_the_check_of_an_example_passes_under_the_name_of_the_wheel(name: str, installed: Path) -> None:
    done = run("-m", f"gateway_examples.{name}.check", folder=installed)
    assert (done.returncode, done.stdout) == (0, f"{name}: all checks passed\n"), done.stderr


@pytest.mark.parametrize("name", CHECKED)
def test_an_example_knows_none_of_its_names_so_that_its_check_holds_for_the_clone_as_well(name: str) -> None:
    for path in (ROOT / "examples" / name).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            absolute = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                absolute = [node.module or ""]
            assert not {word.split(".")[0] for word in absolute} & {"examples", "gateway_examples"}, path
    done = run("-c", f"import examples.{name}.check", folder=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["documents", "sounds"])
def test_a_port_that_is_taken_is_one_line_of_error(name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("-m", f"examples.{name}", "--port", str(port), folder=ROOT)
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1 port {port}" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", CHECKED)
def test_listing_the_tools_of_an_example_does_not_load_pillow(name: str) -> None:
    code = f"import sys, examples.{name}.server; print('PIL' in sys.modules)"
    done = run("-c", code, folder=ROOT)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_readme_names_every_tool_of_its_example(name: str) -> None:
    code = (
        f"import anyio; from examples.{name}.server import server; "
        "print(*(tool.name for tool in anyio.run(server.list_tools)))"
    )
    done = run("-c", code, folder=ROOT)
    readme = (ROOT / "examples" / name / "README.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1] for line in readme.splitlines() if line.startswith("| `") and "://" not in line}
    assert rows == set(done.stdout.split()), done.stderr
