"""Tags of OCI resources beside those of every cloud: why a machine exists, and what it may do."""

OFFER = "gcluster-offer"
"""Key of the offer that a node was bought by; on instance configurations the one they are for."""
TOKEN = "gcluster-token"  # noqa: S105  # a tag's key
"""The burst that an elastic node belongs to: the ledger's intent."""
ROLE = "role"
"""Defined tag that dynamic groups go by: free-form tags can't be asked for in their rules."""
