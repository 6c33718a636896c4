"""How far `gcluster size` is from published runs, and how fast it answers."""
