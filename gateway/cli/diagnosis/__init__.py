"""Finding out what is wrong: with an installation (`doctor`), and with a server that somebody writes (`check`).

What is judged is apart from how it was found out: `toolsets`, `schemas`, `cures`, `examples`, `selection` and the
advice are pure; `upstreams`, `registration`, `ports`, `machinery` and `checkup` start things and look.
"""
