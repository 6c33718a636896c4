"""`python3 gcluster_firmware report|bmc|update`: JSON on stdout, or a sentence on stderr."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from gcluster_firmware.compare import differences, firmware_of
from gcluster_firmware.onboard import onboard
from gcluster_firmware.redfish import Redfish, RedfishError
from gcluster_firmware.update import POLL_S, update


def main() -> int:
    """Run a verb."""
    parser = argparse.ArgumentParser(prog="gcluster_firmware", description=__doc__)
    parser.add_argument("verb", choices=["report", "bmc", "update"])
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--bmc")
    parser.add_argument("--credentials", type=Path, help="file: user on line 1, password on line 2")
    parser.add_argument("--ca", type=Path)
    parser.add_argument("--wanted", type=json.loads, default={})
    parser.add_argument("--poll", type=float, default=POLL_S)
    options = parser.parse_args()
    try:
        answer = _answer(options)
    except RedfishError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(answer, sort_keys=True) + "\n")
    return 0


def _answer(options: argparse.Namespace) -> object:
    if options.verb == "report":
        return onboard()
    try:
        user, password = options.credentials.read_text().splitlines()[:2]
    except (OSError, ValueError, AttributeError) as error:
        raise RedfishError(
            "the BMC's credentials can't be read: two lines, user and password"
        ) from error
    bmc = Redfish(options.bmc, user, password, options.ca)
    if options.verb == "bmc":
        found = firmware_of(bmc)
        return {
            "firmware": {name: component.version for name, component in found.items()},
            "differs": [str(item) for item in differences(found, options.wanted)],
        }
    unknown = [target for target in options.targets if target not in options.wanted]
    if unknown:
        raise RedfishError(f"no version is wanted for {', '.join(unknown)}")
    return [
        asdict(update(bmc, target, options.wanted[target], poll_s=options.poll))
        for target in options.targets
    ]


raise SystemExit(main())
