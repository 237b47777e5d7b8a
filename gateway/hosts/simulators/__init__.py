"""Host simulators: what the model of a real host gets of a tool result.

They are the judge of what the gateway sends, so they are written from the measured facts about each host and know
nothing of profiles, decisions or lowering. Everything here is a pure function of the result as JSON. `model_apis` is
the same for model APIs, and a server of them.
"""
