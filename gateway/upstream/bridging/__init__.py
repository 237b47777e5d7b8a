"""Bridge the eras: adapt requests and results to the protocol revisions of host and upstream."""
