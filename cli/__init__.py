"""One module per verb, one renderer, no logic."""
