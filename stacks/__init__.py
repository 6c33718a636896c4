"""Where machines come from: one folder per provider, the same file names in each."""
