"""The audit trail: what was done to a cluster, by whom, why and with what, and its export."""
