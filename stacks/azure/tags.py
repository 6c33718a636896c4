"""Tags by which machines are found again without the stack: pool, scale set, host."""

POOL = "gcluster-pool"
SET = "gcluster-set"
HOST = "gcluster-host"
