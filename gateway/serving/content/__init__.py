"""Content over HTTP: downloads by signed links, uploads with the token."""
