"""Storage: what nodes mount and serve, one module a kind (pure)."""
