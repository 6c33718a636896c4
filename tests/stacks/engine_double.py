"""A double of `Engine` (stacks/pulumi/engine), the one boundary to Pulumi: stacks held in memory.

It runs the real program on the recorder, and follows protection and retention as the engine does:
what is protected stays with all that it needs; what is retained leaves the stack but not the cloud.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from gcluster.stacks.aws.program.control_plane import RECORDED_ZONES, ZONES
from gcluster.stacks.aws.program.storage import RECORDED_SUBNET, SUBNET
from gcluster.stacks.azure.program.site import answers
from gcluster.stacks.provider import ResourceChange, SiteEvent
from gcluster.stacks.pulumi.engine import checkpoint
from gcluster.stacks.pulumi.engine.command import StackPlace
from gcluster.stacks.pulumi.recording.graph import RecordedResource
from gcluster.stacks.pulumi.recording.record import record

Json = dict[str, Any]  # an engine's JSON


class Killed(BaseException):
    """What is raised where a process would be killed."""


class Engines:
    """All stacks of a test and the calls to them; call it as Engine is called."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.stacks: dict[str, list[Json]] = {}
        """Backend and stack -> its resources; absent: it was never made, or is removed."""
        self.cloud: dict[str, str] = {}
        """URN -> id, of what exists."""
        self.calls: list[str] = []
        self.again: list[str] = []
        """URNs that were to be made from scratch."""
        self.passphrases: set[str] = set()
        self.outputs: Json = {}
        """Of every stack: they outlive what was destroyed, as the engine's do."""
        self.ids: dict[str, str] = {}
        """Name of a resource -> the id that the cloud gives it; default: TYPE~NAME."""
        self.dies_at = ""
        """Call at which the process is killed, once."""

    def __call__(
        self,
        place: StackPlace,
        program: Callable[[], None],
        *,
        passphrase: Callable[[], str],
        emit: Callable[[SiteEvent], None],
        total: int = 0,
    ) -> EngineDouble:
        """Open a stack."""
        del emit, total
        return EngineDouble(self, place, program, passphrase)

    def kinds(self) -> set[str]:
        """Return the short types of what exists in the cloud."""
        return {urn.split("::")[2].rpartition(":")[2] for urn in self.cloud}


class EngineDouble:
    """One stack."""

    def __init__(
        self,
        world: Engines,
        place: StackPlace,
        program: Callable[[], None],
        passphrase: Callable[[], str],
    ) -> None:
        """Read nothing before the first call."""
        self._world = world
        self._place = place
        self._program = program
        self._passphrase = passphrase

    def preview(self) -> tuple[ResourceChange, ...]:
        """Say that nothing is to be done."""
        self._begin("preview")
        return ()

    def refresh(self) -> tuple[ResourceChange, ...]:
        """Find the cloud as the stack has it."""
        self._begin("refresh")
        return ()

    def detect_drift(self) -> tuple[ResourceChange, ...]:
        """Find the cloud as the stack has it."""
        self._begin("look back")
        return ()

    def up(self, *, again: Iterable[str] = ()) -> tuple[ResourceChange, ...]:
        """Make what the program requests; what is there keeps its id but for what is recreated."""
        stack = self._begin("up")
        self._world.again += again
        made = record(
            self._program,
            project=self._place.project,
            stack=self._place.stack,
            answers={ZONES: RECORDED_ZONES, SUBNET: RECORDED_SUBNET, **answers("")},
        )
        stack[:] = [self._entry(resource) for resource in made.resources]
        self._world.outputs = {**made.outputs, **self._world.outputs}
        self._world.cloud.update({e["urn"]: e["id"] for e in stack if e.get("id")})
        return ()

    def destroy(self, *, keep_protected: bool = True) -> tuple[ResourceChange, ...]:
        """Remove what is not protected and not needed by what is."""
        stack = self._begin("destroy")
        kept = checkpoint.staying(checkpoint.resources(self._json())) if keep_protected else ()
        for entry in stack:
            if checkpoint.resource_key(entry["urn"]) not in kept and not entry["retainOnDelete"]:
                self._world.cloud.pop(entry["urn"], None)
        stack[:] = [e for e in stack if checkpoint.resource_key(e["urn"]) in kept]
        return ()

    def cancel(self) -> None:
        """Free the stack."""
        self._begin("cancel")

    def export(self) -> bytes:
        """Return what the stack knows."""
        self._begin("export")
        return self._json()

    def outputs(self) -> Json:
        """Return the stack's messages."""
        self._begin("outputs")
        return self._world.outputs

    def settle(self, take_up: object) -> None:
        """Have begun nothing that isn't written down."""
        del take_up
        self._begin("settle")

    def change(self, edit: Callable[[bytes], bytes | None]) -> None:
        """Let the stack know something else."""
        stack = self._begin("change")
        edited = edit(self._json())
        if edited is not None:
            stack[:] = msgspec.json.decode(edited)["deployment"]["resources"]

    def remove(self) -> None:
        """Remove the stack, which is empty."""
        assert self._begin("remove") == []
        del self._world.stacks[self._name]

    @property
    def _name(self) -> str:
        return f"{self._place.backend}/{self._place.stack}"

    def _begin(self, call: str) -> list[Json]:
        self._world.passphrases.add(self._passphrase())
        self._world.calls.append(call)
        if call == self._world.dies_at:
            self._world.dies_at = ""
            raise Killed
        return self._world.stacks.setdefault(self._name, [])

    def _json(self) -> bytes:
        deployment = {"resources": self._world.stacks[self._name]}
        return msgspec.json.encode({"version": 3, "deployment": deployment})

    def _entry(self, made: RecordedResource) -> Json:
        short = made.type.rpartition(":")[2]
        identifier = self._world.ids.get(made.name, f"{short}~{made.name}")
        return {
            "urn": made.urn,
            "type": made.type,
            "custom": made.custom,
            "id": identifier if made.custom else "",
            "protect": made.options.protect,
            "retainOnDelete": made.options.retain_on_delete,
            "parent": made.parent,
            "provider": f"{made.options.provider}::0" if made.options.provider else "",
            "dependencies": list(made.dependencies),
            "propertyDependencies": {k: list(v) for k, v in made.property_dependencies.items()},
        }
