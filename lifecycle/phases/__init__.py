"""The phases of `up`, and the state that they share."""
