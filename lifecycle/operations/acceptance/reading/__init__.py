"""How the output of each acceptance test is read: figures, and what speaks against the node."""
