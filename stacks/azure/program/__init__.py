"""The Pulumi program of a site on Azure: one component a concept, put together in `site`."""
