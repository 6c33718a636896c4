"""What a cluster is: the typed spec, its loader, its checks and the catalog they read."""
