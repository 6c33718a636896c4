"""The Pulumi program of a site on AWS: one component a concept, put together in `site`."""
