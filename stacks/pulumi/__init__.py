"""Pulumi without a provider: programs recorded offline, graphs as data, components, the engine.

`graph`, `recorded`, `names` and `labels` need no Pulumi; everything else imports it.
"""
