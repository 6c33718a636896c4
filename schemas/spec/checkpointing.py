"""How long jobs save their state, so that it can be held against how often nodes fail."""

from typing import Annotated, ClassVar

from msgspec import Meta

from .noun import Name, Noun, updates
from .units import ByteSize, Duration


class Checkpointing(Noun, frozen=True):
    """The largest job's checkpoints."""

    UPDATES: ClassVar = updates(none="storage every size parameters gpus")

    storage: Annotated[Name, Meta(description="Storage they are written to.")]
    every: Annotated[Duration, Meta(description="Time between two checkpoints.")]
    size: Annotated[
        ByteSize | None, Meta(description="Size of one checkpoint; or give `parameters`.")
    ] = None
    parameters: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Parameters of the model; one checkpoint is taken as 14 bytes each."),
    ] = None
    gpus: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="GPUs of the job; default: all of the largest partition."),
    ] = None
