"""What a round comes to, from the book and one look alone."""

from __future__ import annotations

from gcluster.lifecycle.operations.burst.agent.decide import ElasticPool, GiveUp, acts
from gcluster.lifecycle.operations.burst.agent.ledger import BurstFold
from gcluster.lifecycle.operations.burst.agent.scheduler import NodeSeen, Seen

NOW = 1_767_225_600.0
NAMES = tuple(f"spill{n:04}" for n in range(1, 1001))
POOL = ElasticPool(pool="spill", site="cloud", nodes=NAMES, come_s=600, idle_s=60)


def test_nodes_that_cannot_be_had_are_given_up_at_once_and_not_one_by_one() -> None:
    fold = BurstFold()
    fold.refused["spill", ""] = (NOW - 1, "no capacity")
    seen = Seen(now=NOW, nodes={name: NodeSeen(state="coming") for name in NAMES})

    assert list(acts([POOL], fold, seen, ())) == [GiveUp(nodes=NAMES, reason="no capacity")]
