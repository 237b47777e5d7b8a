"""Finding out what is wrong: with an installation (`doctor`), and with a server that somebody writes (`check`).

What is judged is apart from how it was found out: `toolsets`, `schemas`, `examples`, `selection` and the advice are
pure; `upstreams`, `registration`, `ports`, `media_and_store` and `server_check` start things and look.
"""
