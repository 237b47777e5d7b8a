"""What goes wrong in scripts: what they can catch, and what ends them."""


class ScriptFault(Exception):
    """Something that a script did wrong, or that failed for it: it can catch this as a RuntimeError."""


class ScriptFailed(Exception):
    """A script that did not end as it should: why, in words for the model, and on which line if that is known."""

    def __init__(self, words: str, line: int | None = None, code: str | None = None) -> None:
        super().__init__(words)
        self.words, self.line, self.code = words, line, code
