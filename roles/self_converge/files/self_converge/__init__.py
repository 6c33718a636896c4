"""A node that sets itself up from a signed bundle, and the collector of its reports."""
