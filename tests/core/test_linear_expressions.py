"""Every regular expression takes a short time for each character of a hostile text, or is used where it sees none."""

import importlib
import pkgutil
import re
import time

import gateway

ELSEWHERE = (
    "gateway.hosts.simulators",
    "gateway.testing",
    "gateway.cli.demo",
    "gateway.__main__",
    "gateway.content.media.worker",
)

AT_ONE_PLACE = "is asked for a match at one place only, which is linear"
LIMITED = {
    ("gateway.content.arguments.content_lookup", "_IS_BASE64"): AT_ONE_PLACE,
    ("gateway.content.links.base_url", "_PAIR"): "sees a header, whose length is limited",
    ("gateway.serving.content.ranges", "_RANGE"): AT_ONE_PLACE,
    ("gateway.core.model_apis.turns.references", "_ADDRESS"): AT_ONE_PLACE,
    ("gateway.core.tools.catalogue.hints", "_RESERVED"): AT_ONE_PLACE,
    ("gateway.content.media.documents", "_LINE_END"): "works in a process that is ended",
    ("gateway.content.media.svg", "_DATA"): AT_ONE_PLACE,
    ("gateway.content.media.svg", "_LENGTH"): AT_ONE_PLACE,
    ("gateway.content.store.backend", "_STAGED"): AT_ONE_PLACE,
    ("gateway.telemetry.sanitize", "_DIGEST"): AT_ONE_PLACE,
    ("gateway.upstream.authorization.challenge", "_PARAMETER"): AT_ONE_PLACE,
    ("gateway.upstream.transports.messages", "_LEADING_ID"): AT_ONE_PLACE,
    ("gateway.core.tools.arguments.find_parameters", "_LIST"): "sees the configuration",
    ("gateway.core.profiles.match_profile", "_WILD"): "sees profiles",
    ("gateway.hosts.config_files.json_edits", "_REST_OF_LINE"): "sees the user's own files",
    ("gateway.cli.diagnosis.command_line", "_ASSIGNMENT"): AT_ONE_PLACE,
    ("gateway.cli.diagnosis.command_line", "_TOKEN"): "sees the user's own configuration",
    ("gateway.config.setting_types", "_ADDRESS"): AT_ONE_PLACE,
    ("gateway.core.model.json_text", "_PIECES"): "goes on where its last match ended",
    ("gateway.config.yaml_documents", "_INTEGER"): AT_ONE_PLACE,
    ("gateway.config.yaml_documents", "_NUMBER"): AT_ONE_PLACE,
    ("gateway.config.jsonc", "_STRING"): "sees the user's own files",
    ("gateway.config.jsonc", "_PIECE"): "sees the user's own files",
    ("gateway.config.jsonc", "_TRIVIA"): "sees the user's own files",
    ("gateway.hosts.config_files.toml_tables", "_HEADER"): "sees the user's own files",
    ("gateway.hosts.config_files.toml_tables", "_PIECE"): "sees the user's own files",
}

PIECES = (
    *"aA0-_/\\.=+ \n,;:\"'()[]{}<#*%$@&",
    *("a.", "a/", "a=", "a;", "a b ", '\\"', "data:", "data:a/b;a=b;base64,", "url(", "/*", "//", "\x1b[", "A1/", "a-"),
    *("<svg ", 'viewBox="', "![a](", "<img ", "filename=", '"id":1', "\r\n", "\n ", "a://", "${a", "[image", "img_"),
    *("handle ", "[]", " (via a", "key=", "'a", "é"),
)


def expressions() -> dict[tuple[str, str], re.Pattern]:
    found = {}
    for module in pkgutil.walk_packages(gateway.__path__, "gateway."):
        if module.name.startswith(ELSEWHERE):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, re.Pattern) and value not in found.values():
                found[module.name, name] = value
    return found


def seconds(expression: re.Pattern, piece: str, length: int) -> float:
    text = piece * (length // len(piece)) + "\0"
    hostile = text.encode() if isinstance(expression.pattern, bytes) else text
    began = time.thread_time()
    for _ in expression.finditer(hostile):
        pass
    return time.thread_time() - began


LENGTH = 6_000
MOST_SECONDS = 5e-6 * LENGTH
"""Linear ones take some 50 nanoseconds for a character, those that go back over what they passed 10 microseconds."""


def goes_back(expression: re.Pattern, piece: str) -> bool:
    return all(seconds(expression, piece, LENGTH) > MOST_SECONDS for _ in range(3))


def test_no_expression_goes_back_over_a_hostile_text():
    found = {
        key: [piece for piece in PIECES if goes_back(one, piece)]
        for key, one in expressions().items()
        if key not in LIMITED
    }
    assert {key: pieces for key, pieces in found.items() if pieces} == {}
    assert len(found) > 60


def test_the_kind_of_expression_that_is_meant_is_noticed():
    assert goes_back(re.compile(r"""[^\s"'()]{1,400}\.(?:pdf|png|jpe?g|gif)(?![\w/])""", re.IGNORECASE), "a.")
    assert goes_back(re.compile(r"\s+$"), " ")
