"""The packages that fit a node's kernel, from what apt says of each vendor's repository."""

from __future__ import annotations

import pytest
from running import module, module_util

PACKAGES = module("lustre_packages_info")
Failed = module_util("state").Failed
FSX = {
    "lustre-client-modules-6.8.0-1030-aws": ["2.15.6-1fsx10", "2.15.5-1fsx3"],
    "lustre-client-modules-6.8.0-1021-aws": ["2.15.5-1fsx3"],
    "lustre-client-utils": ["2.15.6-1fsx10", "2.15.5-1fsx3"],
}
AMLFS = {
    "amlfs-lustre-client-2.15.7-33-g79ddf99": ["6.8.0-1030-azure", "6.8.0-1021-azure"],
    "amlfs-lustre-client-2.17.0-25-g48fb0ca": ["6.8.0-1030-azure"],
}


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return what is installed, to be changed."""
    known, installed = {**FSX, **AMLFS}, dict[str, str]()
    monkeypatch.setattr(PACKAGES, "apt_versions", lambda name: known.get(name, []))
    monkeypatch.setattr(PACKAGES, "apt_installed", lambda name: installed.get(name, ""))
    monkeypatch.setattr(
        PACKAGES, "apt_names", lambda start: [name for name in known if name.startswith(start)]
    )
    return installed


@pytest.mark.usefixtures("apt")
def test_modules_for_the_kernel_and_programs_are_of_one_version() -> None:
    assert PACKAGES.per_kernel("client", "2.15", "6.8.0-1030-aws") == [
        "lustre-client-modules-6.8.0-1030-aws=2.15.6-1fsx10",
        "lustre-client-utils=2.15.6-1fsx10",
    ]


def test_what_is_installed_and_fits_stays(apt: dict[str, str]) -> None:
    apt["lustre-client-modules-6.8.0-1030-aws"] = "2.15.5-1fsx3"
    modules, _ = PACKAGES.per_kernel("client", "", "6.8.0-1030-aws")
    assert modules.endswith("=2.15.5-1fsx3")


@pytest.mark.usefixtures("apt")
def test_a_kernel_without_modules_is_refused_with_those_that_have_some() -> None:
    with pytest.raises(Failed, match=r"kernel 6\.8\.0-1031-aws: .* 6\.8\.0-1021-aws, 6\.8"):
        PACKAGES.per_kernel("client", "", "6.8.0-1031-aws")


@pytest.mark.usefixtures("apt")
@pytest.mark.parametrize(
    ("wanted", "kernel", "package"),
    [
        ("", "6.8.0-1030-azure", "amlfs-lustre-client-2.17.0-25-g48fb0ca"),
        ("2.15.7", "6.8.0-1030-azure", "amlfs-lustre-client-2.15.7-33-g79ddf99"),
        ("", "6.8.0-1021-azure", "amlfs-lustre-client-2.15.7-33-g79ddf99"),
    ],
)
def test_microsofts_package_is_the_newest_that_has_the_kernel(
    wanted: str, kernel: str, package: str
) -> None:
    assert PACKAGES.azure(wanted, kernel) == [f"{package}={kernel}"]


def test_microsofts_package_that_is_installed_for_the_kernel_stays(apt: dict[str, str]) -> None:
    apt["amlfs-lustre-client-2.15.7-33-g79ddf99"] = "6.8.0-1030-azure"
    assert PACKAGES.azure("", "6.8.0-1030-azure") == [
        "amlfs-lustre-client-2.15.7-33-g79ddf99=6.8.0-1030-azure"
    ]
