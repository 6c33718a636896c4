"""Every input of every example is one that AWS's own API models take (botocore).

Each resource becomes the calls that the provider makes for it (tests/pulumi_double/aws_requests),
with ids of the real form; then each call is held to the model: names, types, required members,
lengths, ranges, patterns, enumerations. What a model leaves open, and only the service checks, is
not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session  # type: ignore[import-untyped]
import pytest
from botocore.validate import ParamValidator  # type: ignore[import-untyped]
from tests.pulumi_double.aws_requests import requests
from tests.pulumi_double.clouds import InventedCloud
from tests.pulumi_double.replay import replay
from tests.pulumi_double.sites import CloudSite, cloud_sites

_SESSION = botocore.session.get_session()
_UNLISTED = "p6e-gb300.36xlarge"
"""AWS' user guides of EKS and PCS name it, its API model doesn't yet."""
SITES = [site for site in cloud_sites() if site.cloud == "aws"]


def complaints(shape: Any, value: Any, path: str) -> Iterator[str]:
    """Yield what botocore's own validator leaves out: enumerations, patterns, upper limits."""
    if shape.type_name == "structure":
        for key, item in value.items():
            yield from complaints(shape.members[key], item, f"{path}.{key}")
    elif shape.type_name == "list":
        for item in value:
            yield from complaints(shape.member, item, path)
    elif shape.type_name == "map":
        for key, item in value.items():
            yield from complaints(shape.key, key, path)
            yield from complaints(shape.value, item, f"{path}.{key}")
    size = value if isinstance(value, int) else len(value)
    if size > shape.metadata.get("max", size):
        yield f"{path}: {value} is over {shape.metadata['max']}"
    if isinstance(value, str):
        yield from _of_text(shape, value, path)


def _of_text(shape: Any, value: str, path: str) -> Iterator[str]:
    if shape.enum and value not in {*shape.enum, _UNLISTED}:
        yield f"{path}: {value} is none of {shape.enum}"
    pattern = shape.metadata.get("pattern")
    if pattern and not _python(pattern).search(value):
        yield f"{path}: {value} does not match {pattern}"


def _python(pattern: str) -> re.Pattern[str]:
    r"""Return a pattern of Java's in Python's words: \p{L} and its like are any letter or sign.

    What Java writes as a range of pairs is one of code points.
    """
    pairs = r"\uD800\uDC00-\uDBFF\uDFFF"
    known = {r"\p{L}": r"\w", r"\p{Z}": r"\s", r"\p{N}": r"\d", pairs: r"\U00010000-\U0010FFFF"}
    for theirs, ours in known.items():
        pattern = pattern.replace(theirs, ours)
    flags = re.IGNORECASE if "(?i)" in pattern else 0
    return re.compile(pattern.replace("(?i)", ""), flags)


@pytest.mark.parametrize("site", SITES, ids=[site.id for site in SITES])
def test_aws_takes_every_input(site: CloudSite, tmp_path: Path) -> None:
    found: list[str] = []
    for made in replay(site.recorded(), InventedCloud(tmp_path / "cloud.json")):
        for call in requests(made.resource.type, made.resource.name, made.inputs):
            model = _SESSION.get_service_model(call.service)
            [operation] = [
                name
                for name in model.operation_names
                if name.lower() == call.operation.replace("_", "")
            ]
            shape = model.operation_model(operation).input_shape
            report = ParamValidator().validate(call.parameters, shape)
            where = f"{made.resource.name} {call.operation}"
            if report.has_errors():
                found.append(f"{where}: {report.generate_report()}")
            else:
                found += complaints(shape, call.parameters, where)
    assert found == []


def test_the_type_that_the_model_does_not_list_is_not_listed_yet() -> None:
    run = _SESSION.get_service_model("ec2").operation_model("RunInstances").input_shape
    assert _UNLISTED not in run.members["InstanceType"].enum


def test_an_input_that_no_model_has_is_seen() -> None:
    shape = _SESSION.get_service_model("fsx").operation_model("CreateFileSystem").input_shape
    given = {"FileSystemType": "LUSTER", "SubnetIds": ["rtb-1"]}
    assert len(list(complaints(shape, given, ""))) == 2
