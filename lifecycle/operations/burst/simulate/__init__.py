"""Replays a job trace against a spec: what waits, money and nodes come to under its policy."""
