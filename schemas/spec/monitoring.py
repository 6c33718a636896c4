"""What watches the cluster."""

from typing import Annotated, ClassVar

from msgspec import Meta

from .noun import Name, Noun, updates
from .units import Duration, Percent


class Monitoring(Noun, frozen=True):
    """Metrics, dashboards and alerts."""

    UPDATES: ClassVar = updates(in_place="prometheus grafana pool retention waste_alert")

    prometheus: Annotated[bool, Meta(description="Metrics of nodes, GPUs, fabric, jobs.")] = False
    grafana: Annotated[bool, Meta(description="Dashboards over them.")] = False
    pool: Annotated[
        Name | None, Meta(description="Pool whose first host runs both; default: the controller's.")
    ] = None
    retention: Annotated[Duration | None, Meta(description="How long metrics are kept.")] = None
    waste_alert: Annotated[
        Percent | None,
        Meta(description="Tell when allocated GPUs are busy less than this over an hour."),
    ] = None
