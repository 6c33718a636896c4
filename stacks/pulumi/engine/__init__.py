"""Pulumi's engine: its command, a site's stack, its events and its checkpoint."""
