"""A guarded update: verified image, required power state of the machine, monitored task.

Nothing is reset here. Firmware that is only staged is reported as such: it takes effect at the next
reset of the machine.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .compare import ROOT, UPDATE_SERVICE, firmware_of
from .redfish import Answer, Redfish, RedfishError, message_of

_DONE = "Completed"
_ENDED_BADLY = frozenset({"Exception", "Killed", "Cancelled", "Interrupted", "Suspended"})
POLL_S = 5.0
MOST_S = 3600.0
"""An HGX baseboard bundle takes about 20 to 40 minutes."""


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    target: str
    version: str
    """What the BMC lists afterwards."""
    staged: bool
    """It takes effect at the next reset."""
    changed: bool = True
    """False: it was there already."""


def update(
    bmc: Redfish, target: str, wanted: Mapping[str, Any], *, poll_s: float = POLL_S
) -> Outcome:
    """Bring one target to its wanted version.

    Args:
        bmc: the service.
        target: Id in the firmware inventory.
        wanted: version, image (a file or a URL that the BMC reaches), sha256 (of a file),
            power_state ("On", "Off" or "any").
        poll_s: seconds between two polls of the task.

    Raises:
        RedfishError: a precondition isn't met, or it was refused or failed; with the resulting
            state.
    """
    component = firmware_of(bmc).get(target)
    if component is None:
        raise RedfishError(f"the BMC lists no {target}")
    if component.version == wanted["version"]:
        return Outcome(target, component.version, staged=False, changed=False)
    if not component.updateable:
        raise RedfishError(f"{target} can't be updated through the BMC")
    service = bmc.get(UPDATE_SERVICE)
    if service.get("ServiceEnabled") is False:
        raise RedfishError("the BMC's update service is off")
    _power(bmc, str(wanted.get("power_state", "On")))
    answer = _start(bmc, service, component.path, wanted)
    task = _watch(bmc, answer, poll_s)
    now = firmware_of(bmc).get(target)
    version = now.version if now else ""
    if version == wanted["version"]:
        return Outcome(target, version, staged=False)
    if _needs_reset(task):
        return Outcome(target, version, staged=True)
    raise RedfishError(
        f"{target}: the update ended well, yet the BMC lists {version or 'nothing'} "
        "and requests no reset"
    )


def proven(image: Path, sha256: str) -> Path:
    """Return the image if it is the expected one.

    Raises:
        RedfishError: it can't be read or is another one.
    """
    digest = hashlib.sha256()
    try:
        with image.open("rb") as file:
            for chunk in iter(lambda: file.read(2**20), b""):
                digest.update(chunk)
    except OSError as error:
        raise RedfishError(f"{image}: {error.strerror}") from error
    if not sha256 or digest.hexdigest() != sha256.lower():
        raise RedfishError(f"{image}: SHA-256 is {digest.hexdigest()}, not {sha256 or 'given'}")
    return image


def _power(bmc: Redfish, wanted: str) -> None:
    """Refuse while a system is in another power state than the update needs."""
    if wanted == "any":
        return
    for member in bmc.get(f"{ROOT}/Systems").get("Members", []):
        system = bmc.get(member["@odata.id"])
        state = str(system.get("PowerState") or "unknown")
        if state != wanted:
            raise RedfishError(f"{system.get('Id')} is {state}; the update needs it {wanted}")


def _start(
    bmc: Redfish, service: Mapping[str, Any], path: str, wanted: Mapping[str, Any]
) -> Answer:
    image = str(wanted["image"])
    if "://" in image:
        action = service.get("Actions", {}).get("#UpdateService.SimpleUpdate", {}).get("target")
        if not action:
            raise RedfishError("the BMC fetches no images (no SimpleUpdate): give a file")
        return bmc.post(action, {"ImageURI": image, "Targets": [path]})
    push = service.get("MultipartHttpPushUri")
    if not push:
        raise RedfishError("the BMC takes no pushed images (no MultipartHttpPushUri): give a URL")
    file = proven(Path(image), str(wanted.get("sha256", "")))
    return bmc.push(push, {"Targets": [path]}, file)


def _watch(bmc: Redfish, answer: Answer, poll_s: float) -> dict[str, Any]:
    """Return the task when it ended well."""
    place = str(answer.body.get("@odata.id") or answer.location)
    if not place or ("/Tasks/" not in place and "/TaskMonitors/" not in place):
        raise RedfishError("the BMC took the update and names no task to watch")
    end = time.monotonic() + MOST_S
    while True:
        task = bmc.get(place)
        state = str(task.get("TaskState", ""))
        bad_health = task.get("TaskStatus") not in {None, "OK", "Warning"}
        if state in _ENDED_BADLY or (state == _DONE and bad_health):
            reason = message_of(task) or "it says no reason"
            raise RedfishError(f"the update failed ({state}): {reason}")
        if state == _DONE:
            return task
        if time.monotonic() > end:
            raise RedfishError(f"the update did not end within {MOST_S / 60:.0f} minutes: {place}")
        time.sleep(poll_s)


def _needs_reset(task: Mapping[str, Any]) -> bool:
    ids = [str(line.get("MessageId", "")) for line in task.get("Messages", [])]
    return any("ResetRequired" in i or "AwaitToActivate" in i for i in ids)
