"""Scripts whose values take no memory, and for ever to be looked at: they end, and nobody else waits."""

from typing import Any

CONFIG = """
[code_mode]
enabled = true
run_time = "2s"
may_change = ["bystander__*"]
"""
WIDE = "a = (0,) * 10\nfor i in range(80): a = (a,) * 10\n"
DOUBLED = "a = (0,)\nfor i in range(64): a = (a, a)\n"
SCRIPTS = {
    "a key": WIDE + "show({a: 1})",
    "an argument": DOUBLED + "bystander__ping(x={a: 1})",
    "the last value": DOUBLED + "{a}",
    "deep": "a = 0\nfor i in range(10_000): a = [a]\nbystander__ping(x=a)",
    "digits": "show([10 ** 100_000] * 50)",
    "long": "s = 'x' * 5_000_000\nfor i in range(20): bystander__ping(x=s)",
    "prints": "while True: print('x')",
}


def test_a_script_keeps_only_its_own_caller_waiting(attacked: Any) -> None:
    gateway = attacked(config=CONFIG)
    host = gateway.client("claude-code")
    for what, script in SCRIPTS.items():
        with gateway.watched(what) as others:
            result = host.call("gateway_run", {"code": script})
        assert result.get("content"), result
        assert not others.failures
        assert others.longest < 5
        assert others.growth < 300 * 2**20
    host.close()
