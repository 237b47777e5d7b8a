"""The keys that replicas share in Redis. All are in one slot of a Redis cluster, so that transactions may use several.

secret          what their signatures are made with, in hex
beginning       a name for the time since Redis was last empty
retelling       there while replicas tell it again what it had before, for those that have come since
replicas        ids of those that have been there lately; replica:ID what each says of itself, until it is lost
session:ID      what another replica needs to take a session over (`session_index`)
answers:ID      answers that a replica left behind when it was stopped, for hosts that resume their streams
owner:HASH      the replica that has the state of an owner in an upstream (`state_owners`)
claims          a stream of who has claimed which of these, lately (`claim_log`)
task:HASH       where a task is (`task_index`)
outcome:HASH    how a long call has ended, which its host may ask for when its replica is gone (`task_index`)
use:HASH        what a principal or token has used of its limits (`shared_limits`)
"""

import hashlib

TAG = "{mcp-gateway:cluster}"
"""What all keys begin with: what is in the braces decides on their slot."""

SECRET = f"{TAG}:secret"
REPLICAS = f"{TAG}:replicas"
BEGINNING = f"{TAG}:beginning"
RETELLING = f"{TAG}:retelling"
CLAIMS = f"{TAG}:claims"
OWNER = f"{TAG}:owner:"
"""What the keys of owners begin with."""


def replica_key(replica: str) -> str:
    """Return the key of what a replica says of itself."""
    return f"{TAG}:replica:{replica}"


def session_key(session: str) -> str:
    """Return the key of the record of a session."""
    return f"{TAG}:session:{_digest(session)}"


def answers_key(session: str) -> str:
    """Return the key of the answers that were left behind for a session."""
    return f"{TAG}:answers:{_digest(session)}"


def owner_key(upstream: str, owner: str) -> str:
    """Return the key of the replica that has the state of an owner in an upstream."""
    return OWNER + _digest(upstream, owner)


def task_key(client: str, task: str) -> str:
    """Return the key of a task of a client."""
    return f"{TAG}:task:{_digest(client, task)}"


def outcome_key(client: str, call: str) -> str:
    """Return the key of the outcome of a long call of a client."""
    return f"{TAG}:outcome:{_digest(client, call)}"


def use_key(kind: str, who: str, what: str) -> str:
    """Return the key of what somebody has used of a limit."""
    return f"{TAG}:use:{_digest(kind, who, what)}"


def _digest(*parts: str) -> str:
    """Return a name of fixed length: hosts choose some of these, so they may be long, or ids that let somebody in."""
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()
