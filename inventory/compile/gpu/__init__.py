"""GPUs: drivers, libraries and containers that use them (pure)."""
