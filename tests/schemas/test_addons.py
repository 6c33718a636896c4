"""The catalog of add-ons: each has what `up` must know, and says what is unconfirmed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gcluster.inventory.compile.kubernetes_objects import addons
from gcluster.schemas.catalog import Addon, load_catalog

ADDONS = sorted(load_catalog().addons)


def addon(name: str) -> Addon:
    """Return an add-on that comes with gcluster."""
    return load_catalog().addons[name]


@pytest.mark.parametrize("name", ADDONS)
def test_a_chart_is_named_in_its_repository_and_a_manifest_is_the_file(name: str) -> None:
    found = addon(name)
    assert (found.chart is not None) == (found.kind == "helm")


@pytest.mark.parametrize("name", ADDONS)
def test_what_is_unverified_or_from_elsewhere_is_a_field_of_it(name: str) -> None:
    found = addon(name)
    named = {*found.unverified, *found.sources}
    assert all(getattr(found, field) for field in named)


@pytest.mark.parametrize("name", ADDONS)
def test_what_must_be_there_before_is_an_add_on(name: str) -> None:
    assert set(addon(name).after) <= set(ADDONS)


def test_every_add_on_has_its_place_in_the_order() -> None:
    assert sorted(addons.ORDER) == ADDONS


def test_what_has_no_digest_is_reported_with_its_images() -> None:
    assert addon("kueue").unfilled == ["", "registry.k8s.io/kueue/kueue:v0.20.3"]
    assert "" not in addon("csi-driver-nfs").unfilled


def test_the_page_shows_which_add_ons_have_all_digests() -> None:
    known = load_catalog().addons.values()
    whole = {one.name for one in known if not one.unfilled}
    part = {one.name for one in known if one.unfilled and "" not in one.unfilled}
    page = (Path(__file__).parents[2] / "docs" / "kubernetes-addons.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| (all that|of the chart)[^|]*\| (.*) \|$", page, re.MULTILINE))
    assert set(re.findall("`([a-z0-9-]+)`", rows["all that"])) >= whole
    assert set(re.findall("`([a-z0-9-]+)`", rows["of the chart"])) == part
    assert set(re.findall("`([a-z0-9-]+)`", rows["all that"])) <= whole | part
