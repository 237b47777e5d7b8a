"""Entries of a registry as upstreams: the examples of the format's own documentation, and entries that mean harm."""

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.expansion import expand
from gateway.core.registry.entry import fits, is_registry_name, read_entry, read_page
from gateway.core.registry.inputs import defaults, problem_with
from gateway.core.registry.risks import risks_of
from gateway.core.registry.ways import Way, ways_of

ROOT = Path(__file__).parents[3]
NAME = "io.github.acme/weather"


def ways(**server: Any) -> list[Way]:
    entry = read_entry({"server": {"name": NAME, "version": "1.2.3", **server}})
    assert entry is not None
    return ways_of(entry)


def package(kind: str = "npm", identifier: str = "weather", version: str | None = "1.2.3", **more: Any) -> Way:
    about = {"registryType": kind, "identifier": identifier, "transport": {"type": "stdio"}, **more}
    return ways(packages=[about if version is None else {**about, "version": version}])[0]


def line(way: Way, **answers: Any) -> str:
    """The command line that is written, with its environment."""
    assert way.obstacle is None, way.obstacle
    given_lists = {name: value if isinstance(value, list) else [value] for name, value in answers.items()}
    upstream = way.upstream({**defaults(way.questions), **given_lists}, f"{NAME}@1.2.3")
    assert upstream["registry"] == f"{NAME}@1.2.3"
    env = [f"{name}={value}" for name, value in upstream.get("env", {}).items()]
    return shlex.join([*env, upstream["command"], *upstream["args"]])


FOLDERS = {"type": "positional", "valueHint": "dir", "default": "/home/you", "isRequired": True, "isRepeated": True}
MOUNT = {
    "type": "named",
    "name": "--mount",
    "value": "type=bind,src={source},dst={target}",
    "isRequired": True,
    "isRepeated": True,
    "variables": {
        "source": {"format": "filepath", "isRequired": True},
        "target": {"isRequired": True, "default": "/project"},
    },
}
LOG = {"name": "LOG_LEVEL", "default": "info"}
FIXED = [{"type": "positional", "value": "mcp"}, {"type": "positional", "value": "start"}]


@pytest.mark.parametrize(
    ("way", "answers", "expected"),
    [
        (
            package("npm", "@acme/files", packageArguments=[FOLDERS], environmentVariables=[LOG]),
            {"dir": ["/a", "/b"]},
            "LOG_LEVEL=info npx -y @acme/files@1.2.3 /a /b",
        ),
        (package("npm", "@acme/files", packageArguments=[FOLDERS]), {}, "npx -y @acme/files@1.2.3 /home/you"),
        (
            package("oci", "mcp/files", runtimeArguments=[MOUNT], packageArguments=FIXED, environmentVariables=[LOG]),
            {"source": ["/a", "/b"], "target": ["/x", "/y"]},
            "LOG_LEVEL=info docker run -i --rm --mount type=bind,src=/a,dst=/x --mount type=bind,src=/b,dst=/y "
            "-e LOG_LEVEL mcp/files:1.2.3 mcp start",
        ),
        (
            package("oci", "ghcr.io/acme/files:2.0", None, runtimeArguments=[MOUNT]),
            {"source": "/a"},
            "docker run -i --rm --mount type=bind,src=/a,dst=/project ghcr.io/acme/files:2.0",
        ),
        (package("oci", f"acme/f@sha256:{'a' * 64}", None), {}, f"docker run -i --rm acme/f@sha256:{'a' * 64}"),
        (
            package("oci", "acme/f", registryBaseUrl="https://ghcr.example:5000"),
            {},
            "docker run -i --rm ghcr.example:5000/acme/f:1.2.3",
        ),
        (package("pypi", "weather_mcp[all]"), {}, "uvx 'weather_mcp[all]==1.2.3'"),
        (
            package("pypi", "weather", runtimeArguments=[{"type": "named", "name": "--from", "value": "wx==1.2.3"}]),
            {},
            "uvx --from wx==1.2.3 weather",
        ),
        (package("nuget", "Acme.Weather", packageArguments=FIXED), {}, "dnx Acme.Weather@1.2.3 --yes -- mcp start"),
        (
            package("npm", runtimeArguments=[{"type": "positional", "value": one} for one in ("-y", "weather@1.2.3")]),
            {},
            "npx -y weather@1.2.3",
        ),
        (
            package("npm", packageArguments=[{"type": "named", "name": "--verbose", "value": ""}]),
            {},
            "npx -y weather@1.2.3 --verbose",
        ),
        (
            package("npm", packageArguments=[{"type": "named", "name": "--port="}]),
            {"port": "80"},
            "npx -y weather@1.2.3 --port=80",
        ),
        (
            package("npm", registryBaseUrl="https://packages.example/npm"),
            {},
            "npx -y --registry=https://packages.example/npm weather@1.2.3",
        ),
        (package("npm", runtimeHint="rm -rf"), {}, "npx -y weather@1.2.3"),
    ],
)
def test_a_package_is_run_by_the_usual_program_at_an_exact_version(way: Way, answers: Any, expected: str) -> None:
    assert line(way, **answers) == expected


def test_the_usual_package_registry_is_not_named() -> None:
    assert line(package("npm", registryBaseUrl="https://" + ".".join(["registry", "npmjs", "org"]))).count("http") == 0


def test_our_own_entry_can_be_added() -> None:
    entry = read_entry({"server": json.loads((ROOT / "server.json").read_text("utf-8"))})
    assert entry is not None
    (way,) = ways_of(entry)
    assert line(way, config="/a.toml") == f"uvx mcp-multimodal-gateway=={entry.version} serve --config /a.toml"
    assert [one.kind for one in way.questions] == ["filepath"]


def test_a_remote_is_a_url_with_headers() -> None:
    token = {"name": "Authorization", "value": "Bearer {token}", "variables": {"token": {"isSecret": True}}}
    region = {"name": "X-Region", "default": "eu", "choices": ["eu", "us"]}
    (way,) = ways(
        remotes=[
            {
                "type": "streamable-http",
                "url": "https://{tenant}.example.com/{unknown}/mcp?key={key}",
                "variables": {"tenant": {"isRequired": True}, "key": {"isSecret": True, "isRequired": True}},
                "headers": [token, region],
            }
        ]
    )
    assert [(one.name, one.is_secret) for one in way.questions] == [
        ("tenant", False),
        ("key", True),
        ("token", True),
        ("X-Region", False),
    ]
    answers = {**defaults(way.questions), "tenant": ["us"], "key": ["${keyring:k}"]}
    url = "https://us.example.com/{unknown}/mcp?key=${keyring:k}"
    assert way.upstream(answers, "r") == {
        "url": url,
        "transport": "http",
        "headers": {"X-Region": "eu"},
        "registry": "r",
    }
    assert way.upstream({**answers, "token": ["t"]}, "r")["headers"]["Authorization"] == "Bearer t"


@pytest.mark.parametrize(
    ("way", "obstacle"),
    [
        (package("npm", "--call=rm"), "the name of its package"),
        (package("npm", "weather", "latest"), "no exact version"),
        (package("npm", "weather", "1.x"), "no exact version"),
        (package("npm", "weather", "1"), "no exact version"),
        (package("npm", "weather", "1.2"), "no exact version"),
        (package("npm", "weather", "1.2.3 || 2"), "no exact version"),
        (package("npm", "weather", "^1.2.3"), "no exact version"),
        (package("npm", "weather", None), "no exact version"),
        (package("npm", "../weather"), "the name of its package"),
        (package("npm", "git+https://a.example/x"), "the name of its package"),
        (package("pypi", "-r/etc/passwd"), "the name of its package"),
        (package("pypi", "weather @ https://a.example"), "the name of its package"),
        (package("oci", "--privileged"), "the name of its image"),
        (package("oci", "acme/weather:latest", None), "no exact version"),
        (package("oci", "acme/weather", None), "no exact version"),
        (package("oci", "acme/weather", "latest"), "no exact version"),
        (package("mcpb", "https://a.example/x.mcpb", fileSha256="a" * 64), "SHA-256 aaaa"),
        (package("cargo"), "no packages of the kind 'cargo'"),
        (package("npm", transport={"type": "streamable-http", "url": "http://127.0.0.1:1"}), "somebody has to start"),
        (package("npm", packageArguments=[{"type": "positional", "value": "a\nb"}]), "control characters"),
        (package("npm", packageArguments=[{"type": "positional", "value": "a\u202eb"}]), "invisible"),
        (package("npm", packageArguments=[{"type": "positional", "value": "a\ud800b"}]), "control characters"),
        (package("npm", environmentVariables=[{"name": "A", "default": "\udfff"}]), "control characters"),
        (package("npm", packageArguments=[{"type": "named", "name": "--"}]), "has no name"),
        (package("npm", packageArguments=[{"type": "positional", "value": "x" * 20_000}]), "too long"),
        (package("npm", environmentVariables=[{"name": "A=B"}]), "variables has a name that is not one"),
        (ways(remotes=[{"type": "sse", "url": "file:///etc/passwd"}])[0], "not a URL"),
        (ways(remotes=[{"type": "sse", "url": "https://me:secret@a.example"}])[0], "not a URL"),
        (ways(remotes=[{"type": "websocket", "url": "wss://a.example"}])[0], "no remote of the kind"),
        (
            ways(remotes=[{"type": "sse", "url": "https://a.example", "headers": [{"name": "A\r\nB"}]}])[0],
            "headers has a name that is not one",
        ),
    ],
)
def test_what_cannot_be_run_says_why(way: Way, obstacle: str) -> None:
    assert obstacle in (way.obstacle or "")


TRICKS = ["${HOME}", "${file:/etc/passwd}", "${cmd:touch /tmp/x}", "${HOME:-x}", "$${HOME}", "$$${HOME}", "${", "$"]


@pytest.mark.parametrize("trick", TRICKS)
def test_nothing_that_an_entry_fixes_or_proposes_is_a_reference(trick: str) -> None:
    argument = {"type": "positional", "value": trick}
    proposed = {"type": "positional", "valueHint": "x", "default": trick, "choices": [trick]}
    through = {"name": "B", "value": "{v}", "variables": {"v": {"value": trick}}}
    variables = [{"name": "A", "value": trick}, through]
    way = package("npm", packageArguments=[argument, proposed], environmentVariables=variables)
    remote = ways(
        remotes=[{"type": "sse", "url": "https://a.example/mcp", "headers": [{"name": "X", "value": trick}]}]
    )[0]
    for one in (way, remote):
        upstream = one.upstream(defaults(one.questions), "a.b/c@1")
        expanded, problems = expand({"upstreams": {"x": upstream}}, {"HOME": "/home/me"}, {"cmd": _never})
        assert not problems
        texts = [text for text in _texts(expanded) if trick in text]
        assert len(texts) == (4 if one is way else 1)


def _never(_: str) -> str:
    raise AssertionError("an entry was read as a command")


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [text for one in (value.values() if isinstance(value, Mapping) else value) for text in _texts(one)]


@pytest.mark.parametrize(
    ("words", "risk"),
    [
        (["--privileged"], "--privileged"),
        (["-v", "/:/host"], "all files"),
        (["--mount", "type=bind,src=/,dst=/x"], "all files"),
        (["-v", "/var/run/docker.sock:/var/run/docker.sock"], "Docker's own socket"),
        (["--network", "host"], "uses the network"),
        (["--network=host"], "uses the network"),
        (["--cap-add=SYS_ADMIN"], "--cap-add"),
    ],
)
def test_what_opens_the_machine_is_pointed_out(words: list[str], risk: str) -> None:
    way = package("oci", "acme/x", runtimeArguments=[{"type": "positional", "value": word} for word in words])
    assert risk in " ".join(risks_of(way.upstream({}, "r")))
    assert not list(risks_of(package("oci", "acme/x").upstream({}, "r")))
    assert not list(risks_of({"url": "http://127.0.0.1:8000/mcp"}))
    assert list(risks_of({"url": "http://127.0.0.1.example/mcp"}))


@pytest.mark.parametrize("name", ["npm_config_registry", "NODE_OPTIONS", "UV_INDEX", "LD_PRELOAD", "PATH"])
def test_variables_that_steer_the_program_are_pointed_out(name: str) -> None:
    way = package(environmentVariables=[{"name": name, "value": "x"}, {"name": "API_PATH", "value": "y"}])
    assert list(risks_of(way.upstream({}, "r"))) == [f"the variable {name} steers npx itself, or any program"]


def test_another_registry_of_packages_is_pointed_out() -> None:
    way = package(registryBaseUrl="https://packages.example")
    assert list(risks_of(way.upstream({}, "r"))) == ["--registry: packages are taken from another registry"]


def test_questions_of_one_name_are_asked_once_if_they_are_the_same() -> None:
    same = {"isSecret": True, "isRequired": True}
    one = {"name": "A", "value": "x {token}", "variables": {"token": same}}
    other = {"name": "B", "value": "y {token}", "variables": {"token": same}}
    third = {"name": "C", "value": "{token}", "variables": {"token": {"default": "z"}}}
    way = package(environmentVariables=[one, other, third])
    assert [each.name for each in way.questions] == ["token", "token-2"]
    assert way.upstream({"token": ["1"], "token-2": ["2"]}, "r")["env"] == {"A": "x 1", "B": "y 1", "C": "2"}


def test_answers_are_checked() -> None:
    numbers = {"name": "N", "format": "number", "isRequired": True}
    (question,) = package(environmentVariables=[numbers]).questions
    assert problem_with(question, "x") == "it must be a number"
    assert problem_with(question, "1.5") is None
    assert problem_with(question, "${N}") is None
    (question,) = package(environmentVariables=[{"name": "B", "format": "boolean"}]).questions
    assert problem_with(question, "yes") == "it must be true or false"


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("io.github.acme/weather", True),
        ("io.github.acme/weather@1.2.3", True),
        ("weather", False),
        ("io.github.acme/weather@", True),
        ("io.github.acme/weather/more", False),
        ("io.github.acme/weather@../x", False),
        ("https://a.example/b", False),
        ("./server", False),
        ("-a/b", False),
    ],
)
def test_names_of_the_registry_are_known(text: str, is_one: bool) -> None:
    assert is_registry_name(text) is is_one


def test_all_words_have_to_fit() -> None:
    entry = read_entry({"server": {"name": NAME, "version": "1", "title": "Wetter", "description": "für Karten"}})
    assert entry is not None
    assert fits(entry, ["WEATHER", "karten", "wetter"])
    assert not fits(entry, ["weather", "rain"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)
KEYS = ["registryType", "identifier", "version", "transport", "runtimeArguments", "packageArguments", "url", "type"]
KEYS += ["environmentVariables", "headers", "variables", "value", "name", "choices", "default", "isRepeated"]
SHAPED = st.recursive(
    JSON, lambda inner: st.dictionaries(st.sampled_from(KEYS), inner, max_size=8) | st.lists(inner, max_size=3)
)


@given(SHAPED, SHAPED, st.sampled_from(["npm", "oci", "pypi", "nuget"]))
def test_no_entry_at_all_raises_anything(one: Any, other: Any, kind: str) -> None:
    read_page(one)
    about = {**one, "registryType": kind} if isinstance(one, dict) else one
    entry = read_entry({"server": {"name": NAME, "version": "1", "packages": [about], "remotes": [other]}})
    assert entry is not None
    for way in ways_of(entry):
        if way.obstacle is None:
            upstream = way.upstream({question.name: ["x"] for question in way.questions}, "r")
            assert re.fullmatch(r"npx|uvx|dnx|docker", upstream.get("command", "npx"))


def positional(*words: str) -> list[dict[str, str]]:
    return [{"type": "positional", "value": word} for word in words]


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("npm", positional("evil-package")),
        ("npm", positional("--quiet", "evil-package")),
        ("npm", [{"type": "named", "name": "--quiet", "value": "evil-package"}]),
        ("npm", [{"type": "positional", "valueHint": "package", "default": "evil-package"}]),
        ("pypi", positional("evil")),
        ("pypi", positional("--from=weather==1.2.3", "evil")),
        ("oci", positional("evil/image:1.0")),
        ("oci", positional("-it", "evil/image:1.0")),
        ("oci", positional("-v/a:/b", "evil/image:1.0")),
        ("oci", positional("--network=none", "evil/image:1.0")),
        ("oci", [{"type": "named", "name": "--init", "value": "evil/image:1.0"}]),
    ],
)
def test_nothing_is_run_in_place_of_the_package(kind: str, arguments: list[dict[str, str]]) -> None:
    assert "something else than its package" in (package(kind, runtimeArguments=arguments).obstacle or "")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("npm", ("--node-options", "--max-old-space-size=512")),
        ("pypi", ("--with", "numpy", "--quiet", "--python", "3.12")),
        ("oci", ("-it", "-v", "/a:/b", "-e", "A=b", "--init", "--network", "none", "--user=1")),
    ],
)
def test_values_of_options_before_the_package_are_kept(kind: str, words: tuple[str, ...]) -> None:
    way = package(kind, runtimeArguments=positional(*words))
    assert shlex.join(words) in line(way)


@pytest.mark.parametrize(
    "words",
    [
        ("-v", "//:/host"),
        ("-v/:/host",),
        ("--mount", "type=bind,src=/"),
        ("-e", "AWS_SECRET_ACCESS_KEY"),
        ("--env-file", "/home/you/.env"),
        ("--userns", "host"),
    ],
)
def test_what_opens_the_machine_to_a_container_is_pointed_out(words: tuple[str, ...]) -> None:
    way = package("oci", "acme/x", runtimeArguments=positional(*words))
    assert list(risks_of(way.upstream(defaults(way.questions), f"{NAME}@1.2.3")))
