"""The Pulumi program of a site on Google Cloud: one component a concept, put together in `site`."""
