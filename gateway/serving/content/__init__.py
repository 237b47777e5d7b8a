"""Content over HTTP: handed out under signed links, taken in from whoever has the token."""
