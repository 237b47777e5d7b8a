from gateway.core.model.wire import strip_hop_meta


def test_what_belongs_to_the_hosts_connection_does_not_go_on():
    prefix = "io.modelcontextprotocol/"
    own = {prefix + name: {} for name in ("protocolVersion", "clientInfo", "clientCapabilities", "logLevel")}
    params = {"name": "x", "_meta": {**own, "progressToken": 1, "traceparent": "00", "claudecode/toolUseId": "t"}}
    assert strip_hop_meta(params) == {"name": "x", "_meta": {"traceparent": "00", "claudecode/toolUseId": "t"}}
    assert strip_hop_meta({"_meta": {"progressToken": 1}}) == {}
    assert strip_hop_meta({"_meta": "odd", "uri": "x:"}) == {"uri": "x:"}
    assert strip_hop_meta(None) == {}
