"""MIG profiles: how many slices one GPU gives, by its model and memory."""

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, field

from ..decoding import convert
from ..spec.noun import Noun
from ..text.compose import compose
from .citation import Date

PREFIX = "all-"
"""What a configuration's name starts with that cuts all GPUs of a node alike."""
_CLOSE = 0.1
"""A GPU is the one whose memory is this close, as a part: 180 GB are 179 GiB to some sources."""


class MigGpu(Noun, frozen=True):
    """The profiles of one GPU."""

    model: str
    """As in the catalog of machines."""
    memory_gb: Annotated[float, Meta(gt=0)]
    """Memory of the whole GPU in GB, as its largest profile names it."""
    profiles: Annotated[dict[str, Annotated[int, Meta(ge=1, le=7)]], Meta(min_length=1)]
    """Profile -> slices of one GPU."""


class MigProfiles(Noun, frozen=True):
    """The file of profiles."""

    api_version: Literal["gcluster/mig/v1"] = field(name="apiVersion")
    source: str
    date: Date
    gpus: list[MigGpu]


@lru_cache(maxsize=1)
def mig_profiles() -> MigProfiles:
    """Return the profiles that come with gcluster."""
    path = Path(__file__).with_name("mig.yaml")
    composed = compose(path.read_text(encoding="utf-8"), file=path.name)
    return convert(composed.document and composed.document.data, MigProfiles)


def profiles_of(model: str, memory_gib: float) -> dict[str, int] | None:
    """Return configuration ("all-1g.10gb") -> slices of one GPU; None: nothing is known of it."""
    for gpu in mig_profiles().gpus:
        if gpu.model == model and abs(gpu.memory_gb - memory_gib) <= _CLOSE * gpu.memory_gb:
            return {f"{PREFIX}{name}": slices for name, slices in gpu.profiles.items()}
    return None


def slices_of(model: str, memory_gib: float, configuration: str) -> int | None:
    """Return the slices that one GPU gives; None: the configuration isn't known for it."""
    return (profiles_of(model, memory_gib) or {}).get(configuration)
