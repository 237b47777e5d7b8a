"""Between the eras: what a message must carry, and may not, in the protocol revision of the one who reads it."""
