"""An add-on of Kubernetes: a Helm chart or manifests that others publish, at one version."""

from typing import Annotated, Literal

from msgspec import Meta, field

from ..spec.noun import Noun
from .citation import Citation, Date

Digest = Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}$(?!\n)")]
"""SHA-256 of a chart's archive, a manifest's file or an image's manifest."""


class Addon(Noun, frozen=True, kw_only=True):
    """An add-on of the catalog."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]*$(?!\n)")]
    """As `scheduler.addons` and the folder of its values call it."""
    description: Annotated[str, Meta(min_length=1)]
    """What it brings, in a line."""
    kind: Literal["helm", "manifests"]
    """A chart with values, or files that are applied as they are."""
    repository: Annotated[str, Meta(pattern=r"^(https|oci)://[^\s]*[^/\s]$(?!\n)")]
    """Helm: the repository, or oci:// and the folder of the chart; manifests: the file itself."""
    chart: str | None = None
    """Name of the chart in its repository; None for manifests."""
    version: Annotated[str, Meta(min_length=1)]
    """Of the chart, or of what the manifest is taken from."""
    digest: Digest | None = None
    """Of the chart's archive or of the manifest; None: not known, so `up` refuses until a bundle or
    a catalog file of your own says it."""
    images: dict[str, Digest | None] = field(default_factory=dict)
    """Images that the chart is known to start -> digest; None: not known."""
    namespace: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]*$(?!\n)")]
    """Where it runs."""
    privileged: bool = False
    """Its pods take the host's rights, so its namespace allows them."""
    kinds: list[str] = field(default_factory=list)
    """API groups that it brings: kueue.x-k8s.io."""
    after: list[str] = field(default_factory=list)
    """Add-ons that have to be there before it."""
    parameters: dict[str, str] = field(default_factory=dict)
    """What storage classes of its driver must say and no spec does: as the vendor's example has."""
    source: Annotated[str, Meta(min_length=1)]
    date: Date
    sources: dict[str, Citation] = field(default_factory=dict)
    """Fields whose value comes from elsewhere, by dotted path."""
    unverified: list[str] = field(default_factory=list)
    """Fields, by dotted path, that are not confirmed."""
    note: str | None = None
    """What is not known or not certain."""

    @property
    def unfilled(self) -> list[str]:
        """What of it has no digest yet: "" stands for the chart or manifest itself."""
        return [*([] if self.digest else [""]), *(name for name, d in self.images.items() if not d)]
