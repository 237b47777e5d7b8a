"""What the state of the authorization server has in Redis: its keys, and the JSON under them.

Keys, all beginning with `mcp-gateway:authorization:`:

    client:ID       a registered client; `clients:new` and `clients:approved` have the ids, by time
    approval:ID     an approval; `approvals` has the ids by their end, `unused` those whose code nobody has exchanged
    person:NAME     ids of approvals by their last use; `host:CLIENT` the same of a client
    code:HASH       a code; token:HASH a token; used:HASH is there once a code or refresh token was used
    secrets:ID      the keys of the codes and tokens of an approval
    pending:KIND:HASH   a request that a browser goes on with; `pending:KIND` has the keys by their end

In a cluster, what comes before the last colon of that beginning is in braces: a hash tag, which lets all keys be in one
slot, because a transaction cannot go over several.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from gateway.core.model.json_values import as_object
from gateway.serving.authorization.approvals import CODE_SECONDS, Approval, digest
from gateway.serving.authorization.clients import Client

TAG = "{mcp-gateway:authorization}"
"""What all keys in a cluster begin with: what is in the braces decides on their slot."""
SLACK_SECONDS = 3_600
"""Time that a key is kept longer than its record counts: the clocks of gateways and Redis may differ."""

Record = Mapping[str, Any]


class Keys:
    """The names of all keys."""

    def __init__(self, *, in_cluster: bool) -> None:
        self._begin = f"{TAG}:" if in_cluster else "mcp-gateway:authorization:"
        self.new_clients = f"{self._begin}clients:new"
        self.approved_clients = f"{self._begin}clients:approved"
        self.approvals = f"{self._begin}approvals"
        self.unused = f"{self._begin}unused"

    def client(self, client_id: str) -> str:
        return f"{self._begin}client:{digest(client_id)}"

    def approval(self, approval: str) -> str:
        return f"{self._begin}approval:{approval}"

    def person(self, principal: str) -> str:
        return f"{self._begin}person:{digest(principal)}"

    def host(self, client_id: str) -> str:
        return f"{self._begin}host:{digest(client_id)}"

    def secrets(self, approval: str) -> str:
        return f"{self._begin}secrets:{approval}"

    def code(self, secret: str) -> str:
        return f"{self._begin}code:{digest(secret)}"

    def token(self, secret: str) -> str:
        return f"{self._begin}token:{digest(secret)}"

    def used(self, secret: str) -> str:
        return f"{self._begin}used:{digest(secret)}"

    def pendings(self, kind: str) -> str:
        return f"{self._begin}pending:{kind}"

    def pending(self, kind: str, key: str) -> str:
        return f"{self._begin}pending:{kind}:{digest(key)}"


def client_record(client: Client) -> str:
    """Return what is kept of a client."""
    return json.dumps({"name": client.name, "redirect_uris": list(client.redirect_uris), "secret": client.secret})


def client_of(client_id: str, record: Record) -> Client:
    """Return the client of a record. Raises KeyError or TypeError if it is not one."""
    return Client(client_id, record["name"], tuple(record["redirect_uris"]), record["secret"])


def approval_record(approval: Approval) -> str:
    """Return what is kept of an approval. Claims are left out if there are none: older gateways do not know them."""
    kept = asdict(approval)
    if kept["claims"] == "{}":
        del kept["claims"]
    return json.dumps(kept)


def code_record(approval: Approval, redirect_uri: str, challenge: str) -> str:
    """Return what is kept of a code."""
    expires = approval.created + CODE_SECONDS
    return json.dumps(
        {"approval": approval.id, "redirect_uri": redirect_uri, "challenge": challenge, "expires": expires}
    )


def token_record(approval: Approval, kind: str, scope: str, expires: float) -> str:
    """Return what is kept of a token."""
    return json.dumps({"approval": approval.id, "kind": kind, "scope": scope, "expires": expires})


def lasts(expires: float, now: float) -> int:
    """Return the seconds after which a key may go."""
    return max(1, int(expires - now)) + SLACK_SECONDS


async def read(redis: Any, key: str) -> Record | None:
    """Return the record under a key."""
    text = await redis.get(key)
    return None if text is None else as_object(json.loads(text))


async def read_approvals(redis: Any, keys: Iterable[str]) -> list[Approval]:
    """Return those approvals under these keys that are there."""
    wanted = list(keys)
    found: Sequence[str | None] = await redis.mget(wanted) if wanted else []
    return [Approval(**json.loads(text)) for text in found if text is not None]
