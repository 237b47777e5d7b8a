"""Replies in each model API's form: whole, as a stream of events, or as an error."""
