"""What tool search, the shapes of big JSON and tables save a host's model, in tokens."""
