"""Content as bytes: shaped, stored, decoded, described, fetched, linked, and put into arguments."""
