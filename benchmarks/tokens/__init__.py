"""What results and lists cost a host's model, in tokens, and what the gateway saves of that."""
