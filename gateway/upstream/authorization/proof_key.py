"""The key that tokens of a login are bound to, and the proofs of its possession (DPoP, RFC 9449).

Whoever has only the token cannot use it. The signatures are PyJWT's; the module is as heavy as that.
"""

import hashlib
import json
import re
import time
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from secrets import token_urlsafe
from typing import Any
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from gateway.upstream.authorization.ports import bare_url

ALGORITHM = "ES256"
"""The algorithm of all proofs: every server with DPoP that is known of takes it."""

_NONCE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,1024}")
"""RFC 9449, section 8.1."""
_MOST_ORIGINS = 8


class ProofKey:
    """A key pair, and the last nonce that each server has given for its proofs."""

    def __init__(self, kept: str) -> None:
        """`kept` is the private key as `kept` gave it before. Raises jwt.InvalidKeyError if it is none."""
        self.kept = kept
        """The private key (JWK, as JSON), to be sealed with the tokens."""
        self._private: Any = ECAlgorithm(ECAlgorithm.SHA256).from_jwk(kept)
        self._header = {"typ": "dpop+jwt", "jwk": ECAlgorithm.to_jwk(self._private.public_key(), as_dict=True)}
        self._nonces: dict[str, str] = {}

    def __repr__(self) -> str:
        return "ProofKey()"

    @classmethod
    def generate(cls) -> "ProofKey":
        """Return a new key."""
        return cls(json.dumps(ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()), as_dict=True)))

    def proof(self, method: str, url: str, token: str | None = None) -> str:
        """Return the value of the DPoP header for one request, with an access token if it is sent with one."""
        claims: dict[str, Any] = {
            "jti": token_urlsafe(16),
            "htm": method,
            "htu": bare_url(url),
            "iat": int(time.time()),
        }
        if token is not None:
            claims["ath"] = urlsafe_b64encode(hashlib.sha256(token.encode("ascii")).digest()).rstrip(b"=").decode()
        if (nonce := self._nonces.get(_origin(url))) is not None:
            claims["nonce"] = nonce
        return jwt.encode(claims, self._private, ALGORITHM, self._header)

    def heed(self, url: str, nonces: Sequence[str]) -> None:
        """Use the nonce in the DPoP-Nonce headers of a response from now on, with this server and no other."""
        if len(nonces) != 1 or _NONCE.fullmatch(nonces[0]) is None:
            return
        self._nonces.pop(_origin(url), None)
        if len(self._nonces) >= _MOST_ORIGINS:
            del self._nonces[next(iter(self._nonces))]
        self._nonces[_origin(url)] = nonces[0]


def _origin(url: str) -> str:
    parts = urlsplit(bare_url(url))
    return f"{parts.scheme}://{parts.netloc}"
