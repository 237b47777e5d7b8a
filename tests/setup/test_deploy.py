"""deploy/ and the workflows, against the schemas and rules of those who read them, and against the gateway itself."""

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from packaging.requirements import Requirement

from gateway import __version__
from gateway.config.load_settings import load_settings
from gateway.serving.mcp.health_routes import METRICS_PATH
from gateway.serving.mcp.security import HEALTH_PATH, READINESS_PATH
from gateway.telemetry.metrics import Metrics

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
BIN = Path(sys.executable).parent
KUBERNETES = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in (DEPLOY / "kubernetes").glob("*.yaml")}
COMPOSE = yaml.safe_load((DEPLOY / "compose/compose.yaml").read_text("utf-8"))
METRICS = Metrics().exposition()


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)), cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ | environment
    )


def dockerfile() -> list[str]:
    """The instructions, each in one line."""
    text = (DEPLOY / "container/Dockerfile").read_text("utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    return [line.strip() for line in lines.replace("\\\n", " ").splitlines() if line.strip()]


def options(text: str) -> set[str]:
    return {word for word in text.split() if word.startswith("--")}


def test_the_dockerfile_has_no_fault_that_hadolint_knows() -> None:
    found = run(BIN / "hadolint", "deploy/container/Dockerfile")
    assert (found.returncode, found.stdout + found.stderr) == (0, "")


def test_what_the_images_copy_is_in_the_build_context() -> None:
    kept = {
        line[1:]
        for line in (DEPLOY / "container/Dockerfile.dockerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    }
    copied = [
        source
        for line in dockerfile()
        if line.startswith("COPY ") and "--from=" not in line
        for source in line.split()[1:-1]
    ]
    assert copied
    for source in copied:
        assert (ROOT / source).exists(), source
        assert source.split("/")[0] in kept, source


def test_what_the_image_runs_is_a_command_with_its_options() -> None:
    image = dict(line.split(" ", 1) for line in dockerfile() if line.startswith(("ENTRYPOINT", "CMD")))
    command = json.loads(image["ENTRYPOINT"]) + json.loads(image["CMD"])
    assert command[:2] == ["mcp-gateway", "serve"]
    assert options(" ".join(command)) <= options(run(BIN / "mcp-gateway", "serve", "--help").stdout)
    health = next(line for line in dockerfile() if line.startswith("HEALTHCHECK"))
    assert json.loads(health[health.index("[") :]) == ["mcp-gateway", "status", "--json"]


def test_the_image_has_every_extra() -> None:
    """Whoever runs an image cannot add an extra to it."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    locked = {
        line.split("==")[0]
        for line in (ROOT / "requirements/container.txt").read_text("utf-8").splitlines()
        if re.match(r"[a-z0-9]", line)
    }
    assert {Requirement(line).name for lines in extras.values() for line in lines} <= locked


def test_the_compose_file_is_one() -> None:
    found = run(BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", "deploy/compose/compose.yaml")
    assert found.returncode == 0, found.stdout + found.stderr


def test_what_the_compose_file_mounts_and_asks_for_is_there() -> None:
    text = (DEPLOY / "compose/compose.yaml").read_text("utf-8")
    example = (DEPLOY / "compose/example.env").read_text("utf-8")
    assert set(re.findall(r"\$\{(\w+)", text)) == set(re.findall(r"^(\w+)=", example, re.MULTILINE))
    for service in COMPOSE["services"].values():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            assert (DEPLOY / "compose" / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]
    build = COMPOSE["services"]["gateway"]["build"]
    assert (DEPLOY / "compose" / build["context"] / build["dockerfile"]).exists()
    assert any(line.endswith(f" AS {build['target']}") for line in dockerfile())


@pytest.mark.parametrize("place", ["compose", "kubernetes"])
def test_the_configurations_are_valid(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And ask for no other variable than those that the example sets or the page names."""
    for name in ("TOKEN", "STORE_KEY", "CONTENT_KEY", "LOGINS_KEY"):
        monkeypatch.setenv(f"MCP_GATEWAY_{name}", "0123456789abcdef" * 4)
    monkeypatch.setenv("REDIS_PASSWORD", "0123456789abcdef")
    settings = load_settings(DEPLOY / place / "mcp-gateway.toml").settings
    assert settings.http.token
    assert settings.store.url.startswith("s3://")
    assert settings.cluster.url is not None


def test_kubernetes_knows_every_object() -> None:
    objects = [part for name, part in KUBERNETES.items() if name not in {"kustomization", "monitor"}]
    assert len(objects) == 5
    for part in objects:
        kubernetes_validate.validate(part, "1.34", strict=True)


def test_the_objects_of_kubernetes_fit_together() -> None:
    kustomization = KUBERNETES["kustomization"]
    assert {f"{name}.yaml" for name in KUBERNETES} - {"kustomization.yaml"} == set(kustomization["resources"])
    deployment = KUBERNETES["deployment"]["spec"]
    pod = deployment["template"]["spec"]
    (container,) = pod["containers"]
    labels = deployment["template"]["metadata"]["labels"]
    for selector in (
        deployment["selector"]["matchLabels"],
        KUBERNETES["service"]["spec"]["selector"],
        KUBERNETES["disruption"]["spec"]["selector"]["matchLabels"],
        KUBERNETES["network"]["spec"]["podSelector"]["matchLabels"],
        KUBERNETES["monitor"]["spec"]["selector"]["matchLabels"],
    ):
        assert selector == labels
    (port,) = container["ports"]
    assert f"EXPOSE {port['containerPort']}" in dockerfile()
    named = {
        *(container[probe]["httpGet"]["port"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")),
        KUBERNETES["service"]["spec"]["ports"][0]["targetPort"],
        KUBERNETES["monitor"]["spec"]["endpoints"][0]["port"],
        KUBERNETES["network"]["spec"]["ingress"][0]["ports"][0]["port"],
    }
    assert named == {port["name"]}
    assert KUBERNETES["autoscaler"]["spec"]["scaleTargetRef"]["name"] == KUBERNETES["deployment"]["metadata"]["name"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    (generated,) = kustomization["configMapGenerator"]
    assert {"configMap": {"name": generated["name"]}, "name": "configuration"} in pod["volumes"]
    assert pod["terminationGracePeriodSeconds"] > container["lifecycle"]["preStop"]["sleep"]["seconds"] + 30


def test_kubernetes_asks_paths_and_options_that_exist() -> None:
    (container,) = KUBERNETES["deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["startupProbe"]["httpGet"]["path"] == container["livenessProbe"]["httpGet"]["path"] == HEALTH_PATH
    assert container["readinessProbe"]["httpGet"]["path"] == READINESS_PATH
    assert KUBERNETES["monitor"]["spec"]["endpoints"][0]["path"] == METRICS_PATH
    assert options(" ".join(container["args"])) <= options(run(BIN / "mcp-gateway", "serve", "--help").stdout)


def test_the_writable_folders_are_those_of_the_image() -> None:
    (variables,) = (line for line in dockerfile() if line.startswith("ENV PATH="))
    written = {
        value for name, value in re.findall(r"(\w+)=(\S+)", variables) if name in {"HOME", "XDG_RUNTIME_DIR"}
    } | {"/tmp"}
    assert len(written) == 3
    (container,) = KUBERNETES["deployment"]["spec"]["template"]["spec"]["containers"]
    assert written <= {mount["mountPath"] for mount in container["volumeMounts"]}
    gateway = COMPOSE["services"]["gateway"]
    assert written <= {mount.split(":")[0] for mount in gateway["tmpfs"]} | {
        mount.split(":")[1] for mount in gateway["volumes"]
    }


def test_the_systemd_unit_runs_commands_with_their_options() -> None:
    unit = RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment]
    unit.read(DEPLOY / "systemd/mcp-gateway.service", "utf-8")
    for key, command in (("ExecStart", "serve"), ("ExecReload", "reload")):
        words = shlex.split(unit["Service"][key])
        assert words[0].endswith("/bin/mcp-gateway")
        assert words[1] == command
        assert options(" ".join(words)) <= options(run(BIN / "mcp-gateway", command, "--help").stdout)
    folders = dict(pair.split("=") for pair in unit["Service"]["Environment"].split())
    assert folders["XDG_RUNTIME_DIR"] == f"/run/{unit['Service']['RuntimeDirectory']}"
    assert folders["HOME"] == f"/var/lib/{unit['Service']['StateDirectory']}"


def expressions(panels: list[Mapping[str, Any]]) -> Iterator[str]:
    for panel in panels:
        yield from (target["expr"] for target in panel["targets"])


def test_the_dashboard_asks_for_metrics_and_labels_that_exist() -> None:
    dashboard = json.loads((DEPLOY / "grafana/mcp-gateway.json").read_text("utf-8"))
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)", METRICS, re.MULTILINE))
    asked: set[str] = set()
    for expression in expressions(dashboard["panels"]):
        for name in re.findall(r"mcp_gateway_\w+", expression):
            base = name.removesuffix("_bucket")
            assert base in kinds, expression
            assert (name != base) == (kinds[base] == "histogram"), expression
            asked.add(base)
        assert expression.count("(") == expression.count(")"), expression
        assert expression.count("{") == expression.count("}"), expression
    assert kinds.keys() - asked == {"mcp_gateway_info", "mcp_gateway_store_items"}
    boxes = [(panel["gridPos"]["y"], panel["gridPos"]["x"], panel["gridPos"]["w"]) for panel in dashboard["panels"]]
    assert all(x + width <= 24 for _, x, width in boxes)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(boxes) == len({box[:2] for box in boxes})


def test_the_autoscaler_asks_for_a_metric_that_exists() -> None:
    (metric,) = KUBERNETES["autoscaler"]["spec"]["metrics"]
    assert f"# TYPE {metric['pods']['metric']['name']} gauge" in METRICS


def test_the_workflows_are_valid_and_safe() -> None:
    files = sorted(map(str, (ROOT / ".github/workflows").glob("*.yml")))
    assert len(files) == 2
    found = run(BIN / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files)
    assert found.returncode == 0, found.stdout + found.stderr
    found = run(BIN / "zizmor", "--offline", "--min-severity", "medium", "--format", "plain", ".github/workflows")
    assert found.returncode == 0, found.stdout + found.stderr


RELEASE = runpy.run_path(str(DEPLOY / "release.py"))


def test_every_file_names_the_same_version() -> None:
    assert {version for _, version in RELEASE["versions"]()} == {__version__}


def test_a_release_has_to_agree_with_its_tag_and_the_changelog() -> None:
    found = run(sys.executable, "deploy/release.py", "v99.0.0")
    assert found.returncode == 1
    assert f"server.json says {__version__}" in found.stderr
    assert "CHANGELOG.md has no section `## 99.0.0`" in found.stderr
    assert found.stdout == ""
    found = run(sys.executable, "deploy/release.py", f"v{__version__}")
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.strip() in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert len(found.stdout) > 100


def test_the_registry_can_take_server_json() -> None:
    """The rules of its schema that a person could break (registry, docs/reference/server-json)."""
    server = json.loads((ROOT / "server.json").read_text("utf-8"))
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server["name"])
    assert len(server["description"]) <= 100
    (package,) = server["packages"]
    assert set(package) <= {
        *("registryType", "identifier", "version", "runtimeHint", "transport", "packageArguments"),
        *("runtimeArguments", "environmentVariables", "registryBaseUrl", "fileSha256"),
    }
    assert package["identifier"] == "mcp-multimodal-gateway"
    assert package["transport"] == {"type": "stdio"}
    # The registry believes that a package belongs to a server if its description says so.
    assert f"<!-- mcp-name: {server['name']} -->" in (ROOT / "README.md").read_text("utf-8")
    named = [part["name"] for part in package["packageArguments"] if part["type"] == "named"]
    command = [part["value"] for part in package["packageArguments"] if part["type"] == "positional"]
    assert set(named) <= options(run(BIN / "mcp-gateway", *command, "--help").stdout)
