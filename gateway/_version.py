"""The version of the package, apart from everything, so that whoever asks for it loads nothing."""

__version__ = "0.1.0"
