"""A grow that was killed is continued: its machine is recorded in the ledger. No engine runs."""

from __future__ import annotations

from typing import cast

import pytest
from tests.stacks.conftest import SampleSites

from gcluster.stacks.local import apply, labels, nodes, records, survey
from gcluster.stacks.local.engine import Container, Engine


@pytest.mark.parametrize("call", ["grow", "shrink"])
def test_a_machine_without_a_record_is_found_by_its_token(
    call: str, samples: SampleSites, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = samples.new("local")
    context = sample.context
    node = survey.node_resource(context.spec, context.site, "gpu", "gpu009")
    intent = context.ledger.intend(context.site, node)
    worn = {labels.NODE: "gpu009", labels.TOKEN: intent, labels.ADDRESS: "10.210.9.9",
            labels.ELASTIC: "token"}  # fmt: skip
    machine = Container("id9", "gcluster-x-gpu009", worn, "running")
    monkeypatch.setattr(survey, "survey", lambda _: survey.Survey(
        engine=cast("Engine", None), nodes={"gpu009": machine}, network=None,
        namesakes=(), networks=(),
    ))  # fmt: skip
    monkeypatch.setattr(nodes, "remove", lambda *_: None)

    if call == "shrink":
        apply.shrink(context, ["gpu009"])
    else:
        with pytest.raises(Exception, match="not up"):
            apply.grow(context, "gpu", ["gpu009"], "token")

    assert records.load(context).ids["node/gpu009"] == "id9"
    assert sample.ledger.open == {}


def test_a_machine_that_never_answered_is_found_by_its_nodes_name(
    samples: SampleSites, monkeypatch: pytest.MonkeyPatch
) -> None:
    worn = {labels.KIND: "node", labels.NODE: "gpu009"}
    machine = Container("id9", "gcluster-x-gpu009", worn, "running")

    class Listed(Engine):
        containers = networks = volumes = lambda *_: ()  # type: ignore[assignment]

    listed = Listed("podman")
    monkeypatch.setattr(listed, "containers", lambda _: (machine,))
    monkeypatch.setattr(apply, "find_engine", lambda _: listed)

    (left,) = apply.existing(samples.new("local").context)

    assert (left.kind, left.name, left.provider_id) == ("node", "gpu009", "id9")
