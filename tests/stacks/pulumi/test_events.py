"""Events of the engine become progress, changes, and diagnostics that name the resource."""

from pulumi.automation import EngineEvent

from gcluster.stacks.provider import SiteEvent
from gcluster.stacks.pulumi.engine.events import EventFold

STACK = "urn:pulumi:east::gcluster-demo::pulumi:pulumi:Stack::gcluster-demo-east"
POOL = "urn:pulumi:east::gcluster-demo::gcluster:aws:Pool::demo-east-pool-gpu"


def urn(name: str, kind: str = "aws:ec2/instance:Instance") -> str:
    return f"urn:pulumi:east::gcluster-demo::gcluster:aws:Pool${kind}::{name}"


def step(part: str, op: str, name: str, **more: object) -> EngineEvent:
    """One event in the engine's JSON (pulumi/sdk/go/common/apitype/events.go)."""
    state = {"type": "aws:ec2/instance:Instance", "urn": urn(name), "custom": True, "id": "",
             "parent": POOL, "provider": "", "inputs": {}, "outputs": {}}  # fmt: skip
    metadata = {"op": op, "urn": urn(name), "type": state["type"], "provider": "",
                "new": state, **more}  # fmt: skip
    return EngineEvent.from_json({"sequence": 1, "timestamp": 1, part: {"metadata": metadata}})


def diagnostic_event(severity: str, message: str, of: str = "") -> EngineEvent:
    event = {"message": message, "color": "never", "severity": severity, "urn": of}
    return EngineEvent.from_json({"sequence": 1, "timestamp": 1, "diagnosticEvent": event})


def folded(*events: EngineEvent, total: int = 0) -> tuple[EventFold, list[SiteEvent]]:
    emitted: list[SiteEvent] = []
    fold = EventFold("east", emitted.append, total=total)
    for event in events:
        fold.take(event)
    return fold, emitted


def test_a_resource_is_reported_when_it_is_done() -> None:
    fold, emitted = folded(
        step("resourcePreEvent", "create", "gpu-0"),
        step("resourcePreEvent", "same", "vpc"),
        step("resOutputsEvent", "same", "vpc"),
        step("resOutputsEvent", "create", "gpu-0"),
        total=5,
    )
    assert [(event.done, event.total, event.what) for event in emitted] == [
        (1, 5, "Instance vpc is as it should be"),
        (2, 5, "Instance gpu-0 is made"),
    ]
    assert [(change.resource.key, change.effect) for change in fold.changes()] == [
        ("Instance/gpu-0", "create"),
        ("Instance/vpc", "keep"),
    ]
    assert fold.changes()[0].resource.parent == "demo-east-pool-gpu"


def test_resources_without_capacity_are_reported_apart_by_name() -> None:
    fold, _ = folded(
        diagnostic_event("error", "InsufficientInstanceCapacity: not now", urn("demo-east-gpu001")),
        diagnostic_event("error", "VcpuLimitExceeded: too many", urn("demo-east-gpu002")),
        diagnostic_event("error", "update failed", STACK),
    )
    assert {name: found.code for name, found in fold.lacking().items()} == {
        "demo-east-gpu001": "GC960"
    }
    assert [found.code for found in fold.findings()] == ["GC960", "GC961"]


def test_the_steps_of_a_replacement_are_one_change_with_its_reason() -> None:
    detailed = {"subnetId": {"diffKind": "update-replace", "inputDiff": True}}
    fold, emitted = folded(
        step("resourcePreEvent", "create-replacement", "gpu-0", detailedDiff=detailed),
        step("resOutputsEvent", "create-replacement", "gpu-0"),
        step("resourcePreEvent", "replace", "gpu-0"),
        step("resOutputsEvent", "replace", "gpu-0"),
        step("resourcePreEvent", "delete-replaced", "gpu-0"),
        step("resOutputsEvent", "delete-replaced", "gpu-0"),
    )
    [change] = fold.changes()
    assert (change.effect, change.reason) == ("replace", "subnetId")
    assert [event.what for event in emitted] == ["Instance gpu-0 is replaced"]


def test_a_deletion_counts_too() -> None:
    _, emitted = folded(
        step("resourcePreEvent", "delete", "gpu-0"), step("resOutputsEvent", "delete", "gpu-0")
    )
    assert [event.what for event in emitted] == ["Instance gpu-0 is gone"]


def test_frames_are_no_changes() -> None:
    component = {"op": "create", "urn": POOL, "type": "gcluster:aws:Pool", "provider": "",
                 "new": {"type": "gcluster:aws:Pool", "urn": POOL, "custom": False, "id": "",
                         "parent": STACK, "provider": ""}}  # fmt: skip
    stack = {"op": "create", "urn": STACK, "type": "pulumi:pulumi:Stack", "provider": ""}
    events = [
        EngineEvent.from_json({"sequence": 1, "timestamp": 1, part: {"metadata": metadata}})
        for metadata in (component, stack)
        for part in ("resourcePreEvent", "resOutputsEvent")
    ]
    fold, emitted = folded(*events)
    assert fold.changes() == ()
    assert emitted == []


def test_each_failed_resource_is_a_finding_and_the_closing_line_is_not() -> None:
    capacity = "creating EC2 Instance: InsufficientInstanceCapacity: none"
    fold, _ = folded(
        diagnostic_event("info", "creating"),
        diagnostic_event("error", capacity, urn("gpu-0")),
        diagnostic_event("error", capacity, urn("gpu-0")),
        diagnostic_event("error", "api error UnauthorizedOperation", urn("gpu-1")),
        diagnostic_event("warning", "old image \n"),
        diagnostic_event("error", "update failed", STACK),
    )
    assert [(finding.code, finding.summary.partition(":")[0]) for finding in fold.findings()] == [
        ("GC960", "Instance gpu-0"),
        ("GC962", "Instance gpu-1"),
    ]
    assert fold.warnings == ["old image"]


def test_without_a_failed_resource_the_commands_own_words_are_the_finding() -> None:
    fold, _ = folded(diagnostic_event("error", "update failed", STACK))
    [finding] = fold.findings("code: 255\nstderr: error: could not open bucket")
    assert finding.code == "GC966"
    assert "could not open bucket" in finding.detail
