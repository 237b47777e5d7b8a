"""Agent frameworks run against stand-ins of the model APIs: alone, with the gateway, with gateway and proxy.

`make frameworks` runs them and writes docs/matrix/frameworks/; docs/frameworks.md is generated from that. A framework
is a TOML file in `frameworks/`, a program in examples/agents and its requirements beside that.
"""
