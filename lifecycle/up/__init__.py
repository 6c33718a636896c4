"""`up`: its phases, and the run that carries them out."""
