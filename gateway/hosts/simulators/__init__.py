"""Host simulators: what the model of a real host gets of a tool result.

They judge what the gateway sends, so they are written from the measured facts about each host and know nothing of
profiles, decisions or lowering. Everything here is a pure function of the result as JSON. `gateway.testing.model_apis`
does the same for model APIs, with a server for them.
"""
