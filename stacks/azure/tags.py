"""Tags by which machines are found again without the stack: pool, scale set, host."""

SET = "gcluster-set"
