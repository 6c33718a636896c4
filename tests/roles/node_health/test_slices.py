"""GPUs cut into MIG slices: as many on each as there must be, and no NVLink is looked at."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import recorded

Look = Callable[..., dict[str, Any]]
SLICED = {"vendor": "nvidia", "count": 8, "memory_gib": 80, "nvlink": False, "slices": 2}


def devices(count: int) -> str:
    """Return what nvidia-smi -q -x says of so many slices (driver 535)."""
    return "".join(
        f"<mig_device><index>{index}</index><gpu_instance_id>{index + 1}</gpu_instance_id>"
        "<compute_instance_id>0</compute_instance_id></mig_device>"
        for index in range(count)
    )


@pytest.fixture
def slices(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Return a function that cuts the recorded GPUs, the first one otherwise; no NVLink is up."""
    whole = recorded.text

    def change(first: int, others: int) -> None:
        def text(name: str, case: str | None = None) -> str:
            body = whole(name, case)
            if name != "nvidia-smi":
                return body
            body = body.replace("<state>Completed</state>", "<state>Not Started</state>")
            body = re.sub(r"Link (\d+): [0-9.]+ GB/s", r"Link \1: <inactive>", body)
            cut = f"<mig_devices>{devices(others)}</mig_devices></gpu>"
            body = body.replace("</gpu>", cut)
            return body.replace(devices(others), devices(first), 1)

        monkeypatch.setattr(recorded, "text", text)

    return change


def test_a_node_with_all_its_slices_is_fit_whatever_its_nvlinks_are(
    look: Look, slices: Callable[[int, int], None]
) -> None:
    slices(2, 2)
    assert look(gpus=SLICED)["reason"] == ""


def test_a_gpu_with_fewer_slices_drains_its_node(
    look: Look, slices: Callable[[int, int], None]
) -> None:
    slices(1, 2)
    report = look(gpus=SLICED)
    assert report["verdict"] == "unfit"
    assert "mig-slices: GPU 0000:19:00.0: 1 of 2 MIG slices" in report["reason"]


def test_of_whole_gpus_the_fabric_is_looked_at(
    look: Look, slices: Callable[[int, int], None]
) -> None:
    slices(0, 0)
    codes = {each["code"] for each in look()["findings"] if each["drains"]}
    assert codes == {"nvlink-fabric", "nvlink-down"}
