"""`gcluster size`: its options, and what its subverbs have in common."""
