"""Nodes of a cloud mount what its stack made: by an address that is known, or not at all.

The cloud is a double; what is compiled, planned and stamped is gcluster's own.
"""

from __future__ import annotations

import json

import pytest

from gcluster.lifecycle.cluster.outcome import LifecycleError

from .cloud_double import PurchaseScenario

FAST = (
    "storage:\n  fast: {type: lustre, mount: /fsx, site: east, capacity: 4800 GiB,"
    " throughput: 250 MB/s/TiB}\n"
    "software:\n  sources:\n    fsx-lustre: {key_fingerprint: "
    f"{'0A' * 20}}}\n"
)
DEVICE = "fs-0a.fsx.us-east-1.amazonaws.com@tcp:/abcdbev"


def test_nodes_get_the_address_that_the_cloud_reported_when_it_made_the_file_system(
    purchase: PurchaseScenario,
) -> None:
    purchase.write(more=FAST)
    purchase.cloud.systems = {"fast": DEVICE}
    planned = json.dumps([str(step) for step in purchase.plan().steps])
    assert "lustre_client.join" in planned
    purchase.up()
    assert purchase.plan().is_empty, "the plan after it knows the same address"
    purchase.cloud.systems = {"fast": DEVICE.replace("abcdbev", "other")}
    assert not purchase.plan().is_empty


def test_no_node_gets_an_address_that_no_cloud_returned(purchase: PurchaseScenario) -> None:
    purchase.write(more=FAST)
    with pytest.raises(LifecycleError) as caught:
        purchase.up()
    assert caught.value.diagnostics[0].code == "GC1181"
