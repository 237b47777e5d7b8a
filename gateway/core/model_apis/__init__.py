"""Model APIs: completions read, turns written, tool results found in requests and put back."""
