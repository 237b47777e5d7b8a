"""Content as bytes: shaping, storing, decoding, describing, fetching, linking, and putting into arguments."""
