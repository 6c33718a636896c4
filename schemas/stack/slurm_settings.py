"""Settings of Slurm's own files: which there are, and which of them gcluster writes itself."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import field

from ..spec.model import SpecModel
from ..structure.decoding import decode_yaml

SettingsFileName: TypeAlias = Literal["slurm", "cgroup", "slurmdbd"]
"""A file of Slurm's without its ending: slurm is slurm.conf."""
_FILE = Path(__file__).with_name("slurm_settings.yaml")


class ChangedNames(SpecModel, frozen=True):
    """Settings that not all releases know."""

    names: list[str]
    since: str | None = None
    """First release that knows them; None: all that are older do."""
    gone: str | None = None
    """First release that knows them no more."""


class SettingsOfFile(SpecModel, frozen=True):
    """The settings of one file."""

    names: list[str]
    """What all releases of the table know."""
    changed: list[ChangedNames]
    written: dict[str, str]
    """What gcluster writes -> what of the spec says it; "": nothing does."""
    replaces: list[str]
    """What gcluster writes, and the spec may set to another value."""
    secret: list[str] = field(default_factory=list)
    """What holds a password: a spec has none."""

    def releases(self, name: str) -> ChangedNames | None:
        """Return which releases know a setting; None: none does."""
        if name in self.names:
            return ChangedNames(names=[name])
        return next((each for each in self.changed if name in each.names), None)

    @property
    def all_names(self) -> list[str]:
        """Every setting that any release knows."""
        return [*self.names, *(name for each in self.changed for name in each.names)]


class _Files(SpecModel, frozen=True):
    files: dict[SettingsFileName, SettingsOfFile]


@cache
def settings_of_files() -> dict[SettingsFileName, SettingsOfFile]:
    """Return what is known of each file's settings."""
    return decode_yaml(_FILE.read_bytes(), _Files).files
