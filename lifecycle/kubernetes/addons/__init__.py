"""Add-ons of a cluster: fetched by digest, rendered, applied, waited for, pruned."""
