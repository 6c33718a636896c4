"""The burst agent: creates the nodes that a scheduler requests, and removes those it releases.

- `scheduler`: the scheduler interface, without any scheduler's types; Slurm and Kubernetes
  implement it in `lifecycle.operations.burst.slurm` and `.kubernetes`.
- `ledger`: the state of each rented node, from the events. A step is recorded before its call, so
  that a run that is killed anywhere can be resumed.
- `decide`: what to do next, from the ledger and the scheduler's view: pure.
- `money`: what is rented and was spent, for the policy. `prices`: what providers charge now.
- `spill`: who moves, by the policy.
- `calls`: grow, join and shrink; `work`: by the provider. `loop`: round after round.
"""
