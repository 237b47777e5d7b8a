"""An MCP server on stdio whose tools give their results in the forms that are chosen (SEP-3279).

`--revisions` lists those that it speaks. It writes the params of each call to the file `--log`, as lines of JSON. With
`--faulty`, its tool does not declare the forms of its results.
"""

import argparse
import json
import sys
from typing import Any

VERSION = "io.modelcontextprotocol/protocolVersion"
SCHEMA = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
FORMS: dict[tuple[str, str], dict[str, Any]] = {
    ("assistant", "content"): {"content": [{"type": "text", "text": "37 records, for the model"}]},
    ("assistant", "structured"): {"structuredContent": {"count": 37, "for": "model"}},
    ("user", "content"): {"content": [{"type": "text", "text": "a table, for the user"}]},
    ("programmatic", "structured"): {"structuredContent": {"count": 37, "for": "program"}},
}
WITH_SCHEMA = ("structured",)


def variants() -> list[dict[str, Any]]:
    return [
        {"audience": audience, "format": form, **({"schema": SCHEMA} if form in WITH_SCHEMA else {})}
        for audience, form in FORMS
    ]


def tools(revision: str, *, faulty: bool) -> list[dict[str, Any]]:
    shared = {"name": "records", "description": "Find records.", "inputSchema": {"type": "object"}}
    if revision == "2026-12-01":
        return [shared if faulty else {**shared, "outputVariants": variants()}]
    return [{**shared, "outputSchema": SCHEMA}]


def called(revision: str, params: dict[str, Any]) -> dict[str, Any]:
    if revision != "2026-12-01":
        return {
            "content": FORMS["assistant", "content"]["content"],
            **FORMS["assistant", "structured"],
            "resultType": "complete",
        }
    chosen = params.get("requestedOutputs") or [{"audience": "assistant", "format": "content"}]
    outputs = [{**each, **FORMS[each["audience"], each["format"]]} for each in chosen]
    # What nobody has asked for is to reach nobody.
    outputs.append({"audience": "io.modelcontextprotocol/ui", "format": "structured", "structuredContent": "secret"})
    return {"resultType": "complete", "outputs": outputs}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--revisions", default="2026-07-28,2026-12-01")
    parser.add_argument("--faulty", action="store_true")
    parser.add_argument("--log")
    given = parser.parse_args()
    revisions = given.revisions.split(",")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        params = message.get("params") or {}
        revision = str((params.get("_meta") or {}).get(VERSION))
        answer: dict[str, Any]
        if revision not in revisions:
            data = {"supported": revisions, "requested": revision}
            answer = {"error": {"code": -32022, "message": "Unsupported protocol version", "data": data}}
        elif message["method"] == "server/discover":
            shape = {"supportedVersions": revisions, "capabilities": {"tools": {}}}
            answer = {"result": {**shape, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}}
        elif message["method"] == "tools/list":
            listed = tools(revision, faulty=given.faulty)
            answer = {"result": {"tools": listed, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}}
        elif message["method"] == "tools/call":
            if given.log:
                with open(given.log, "a", encoding="utf-8") as log:
                    log.write(json.dumps(params) + "\n")
            answer = {"result": called(revision, params)}
        else:
            answer = {"error": {"code": -32601, "message": "Method not found"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)


if __name__ == "__main__":
    main()
