"""The built-in authorization server (OAuth 2.1), for hosts in the cloud: people log in and approve them."""
