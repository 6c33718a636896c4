"""The Pulumi program of a site: one component a concept, put together in `site`."""
