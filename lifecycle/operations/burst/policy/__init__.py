"""The spill policy: pure, without a clock, and free of any scheduler's types.

- `Rule` (`rule_of(spec, catalog, partition)`): the spec's rules for a partition's spill.
- `PendingJob`, `Rented`, `Situation`: what waits, what is rented and what was spent, as values.
- `decide(rule, job, standing)`: one job; `decide_all(rule, jobs, standing)`: a queue, fairly.
- `going_back(moved, home)`, `to_release(rule, rented, now)`: moving back and releasing.

Times are seconds since the epoch (UTC), lengths seconds, money USD.
"""

from .decide import Decision, Home, Round, decide, decide_all, going_back, to_release
from .rule import Ceiling, Rule, Target
from .situation import WORDS, Backfill, PendingJob, Reason, Rented, Situation
from .spec_rules import rule_of, spilling_partitions

__all__ = [
    "WORDS",
    "Backfill",
    "Ceiling",
    "Decision",
    "Home",
    "PendingJob",
    "Reason",
    "Rented",
    "Round",
    "Rule",
    "Situation",
    "Target",
    "decide",
    "decide_all",
    "going_back",
    "rule_of",
    "spilling_partitions",
    "to_release",
]
