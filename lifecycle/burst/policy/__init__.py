"""The spill policy: pure, without a clock, and free of any scheduler's types.

- `Rule` (`rule_of(spec, catalog, partition)`): what the spec says of a partition's spill.
- `PendingJob`, `Rented`, `Standing`: what waits, what is rented and what was spent, as values.
- `decide(rule, job, standing)`: one job; `decide_all(rule, jobs, standing)`: a queue, fairly.
- `going_back(moved, home)`, `to_release(rule, rented, now)`: the way back.

Times are seconds since the epoch (UTC), lengths seconds, money USD.
"""

from gcluster.lifecycle.burst.policy.decide import Decision, Round, decide, decide_all
from gcluster.lifecycle.burst.policy.drain import Home, going_back, to_release
from gcluster.lifecycle.burst.policy.job import PendingJob
from gcluster.lifecycle.burst.policy.reasons import WORDS, Reason
from gcluster.lifecycle.burst.policy.rule import Ceiling, Rule, Target
from gcluster.lifecycle.burst.policy.spec_rules import rule_of, spilling_partitions
from gcluster.lifecycle.burst.policy.standing import Promise, Rented, Standing

__all__ = [
    "WORDS",
    "Ceiling",
    "Decision",
    "Home",
    "PendingJob",
    "Promise",
    "Reason",
    "Rented",
    "Round",
    "Rule",
    "Standing",
    "Target",
    "decide",
    "decide_all",
    "going_back",
    "rule_of",
    "spilling_partitions",
    "to_release",
]
