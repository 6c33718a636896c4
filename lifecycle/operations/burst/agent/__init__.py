"""The burst agent: it makes the nodes that a scheduler asks for, and gives back what it lets go.

- `scheduler`: what it asks of a scheduler, without any scheduler's types; Slurm is behind it in
  `lifecycle.operations.burst.slurm`.
- `ledger`: where each rented node stands, by the events. A step is on record before the call
  that takes it, so that a run that is killed anywhere is gone on with.
- `decide`: what to do next, from the record and what the scheduler says: pure.
- `money`: what is rented and was spent, for the policy. `prices`: what providers ask for now.
- `spill`: who moves, by the policy.
- `calls`: grow, join and shrink; `work`: by the provider. `loop`: round after round.
"""
