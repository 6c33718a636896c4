"""The Pulumi program of a site on OCI: one component a concept, put together in `site`."""
