"""A machine type of the user's own: what runs goes on without the file that described it."""

from __future__ import annotations

import pytest

from gcluster.lifecycle.outcome import Exit, LifecycleError

from .trial import Trial

_OWN = """\
apiVersion: gcluster/catalog/v1
machines:
  - name: ours
    sites: [simulated]
    simulated: true
    gpu: {vendor: nvidia, model: H100, memory_gib: 80, count: 4}
    source: purchase order
    date: 2026-11
"""


@pytest.fixture
def own(trial: Trial) -> Trial:
    """Give a trial whose compute nodes are of a type that only a file beside the spec knows."""
    (trial.path.parent / "ours.yaml").write_text(_OWN, encoding="utf-8")
    text = trial.path.read_text(encoding="utf-8").replace("sim.h100x8", "ours")
    trial.path.write_text(f"{text}catalog: [ours.yaml]\n", encoding="utf-8")
    return trial


def test_it_comes_up_and_is_compiled_from_the_file(own: Trial) -> None:
    assert own.up().exit_code is Exit.OK
    assert own.open(running=True).catalog.machines["ours"].gpu is not None


def test_it_is_taken_down_without_the_file(own: Trial) -> None:
    own.up()
    (own.path.parent / "ours.yaml").unlink()

    assert own.down().exit_code is Exit.OK


def test_a_file_that_is_named_no_more_is_not_kept(own: Trial) -> None:
    own.up()
    text = own.path.read_text(encoding="utf-8").replace("catalog: [ours.yaml]\n", "")
    own.path.write_text(text.replace("ours", "sim.h100x8"), encoding="utf-8")
    own.up()

    assert own.open(running=True).catalogs == {}


def test_a_spec_that_a_later_check_refuses_is_still_taken_down(trial: Trial) -> None:
    trial.up()
    kept = trial.open(running=True)
    kept.store.put("spec.yaml", kept.spec_text.replace("count: 3", "count: 200000").encode())

    assert trial.down().exit_code is Exit.OK


def test_a_file_that_is_not_there_stops_up_before_anything_is_made(own: Trial) -> None:
    (own.path.parent / "ours.yaml").unlink()
    with pytest.raises(LifecycleError, match="does not exist") as caught:
        own.up()

    assert len(caught.value.diagnostics) == 1
