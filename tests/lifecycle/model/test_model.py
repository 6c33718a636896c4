"""Some stories of the model in every run of the tests; `make test-model` tells ten thousand."""

from __future__ import annotations

import pytest

from .mutate import MUTATIONS, found_without
from .tell import tell

STORIES = 60


def test_whatever_befalls_a_cluster_nothing_is_orphaned_made_twice_or_lost() -> None:
    told = tell(STORIES, 0)
    assert told["stories"] >= STORIES
    assert told["killed"] > STORIES // 4
    assert told["paused"] > 0


@pytest.mark.parametrize(
    "what", ["the write of intents before a call", "the sweep at the end of down"]
)
def test_the_model_notices_when_a_part_is_missing(what: str) -> None:
    assert found_without(MUTATIONS[what], stories=200)
