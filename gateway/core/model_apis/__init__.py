"""Model APIs: reading completions, writing turns, and finding and replacing tool results in requests."""
