"""Tags of AWS resources beside those of every cloud: which node a machine is, and why it exists."""

OFFER = "gcluster-offer"
"""Key of the offer that a node was bought by; on launch templates the one they are for."""
TOKEN = "gcluster-token"  # noqa: S105  # a tag's key
"""The burst that an elastic node belongs to: the ledger's intent."""
