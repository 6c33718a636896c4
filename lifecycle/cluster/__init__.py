"""A cluster as commands see it: its spec, its sites, its places on this machine."""
