"""The rungs that a pool is bought on: which is next, where each stands, how they are walked."""
