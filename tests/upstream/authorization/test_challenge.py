"""Reading WWW-Authenticate."""

import pytest

from gateway.upstream.authorization.challenge import Challenge, challenge_in


@pytest.mark.parametrize(
    ("headers", "challenge"),
    [
        ([], Challenge()),
        (["Basic realm=x"], Challenge()),
        (["Bearer"], Challenge("bearer")),
        (['bearer scope="a b a"'], Challenge("bearer", scopes=("a", "b"))),
        (["Bearer scope=a"], Challenge("bearer", scopes=("a",))),
        (['Bearer scope=""'], Challenge("bearer", scopes=())),
        (
            ['Bearer error="insufficient_scope", scope="a", resource_metadata="https://x/y,z"'],
            Challenge("bearer", "insufficient_scope", ("a",), "https://x/y,z"),
        ),
        (['Basic realm="a, Bearer scope=b", Bearer error=invalid_token'], Challenge("bearer", "invalid_token")),
        (
            ["Bearer error=x", 'Bearer resource_metadata="https://x"'],
            Challenge("bearer", resource_metadata="https://x"),
        ),
        (['Bearer xscope="no", error_scope="no", scope="yes"'], Challenge("bearer", scopes=("yes",))),
        (['Bearer scope="a \\"b\x07 c"'], Challenge("bearer", scopes=("a", "c"))),
        (['Bearer realm="unclosed, scope="a'], Challenge("bearer")),
        (["DPoP algs=ES256"], Challenge("dpop", takes_proofs=True)),
        (["=, ,,;" * 9000], Challenge()),
    ],
)
def test_a_challenge_is_read_as_it_is_written(headers: list[str], challenge: Challenge) -> None:
    assert challenge_in(headers) == challenge
