"""A rolling change: nodes leave service a few at a time, are changed, verified and given back."""

from gcluster.lifecycle.rolling.roll import Rolled, roll
from gcluster.lifecycle.rolling.service import NodeService, NodeUse, ServiceSilent
from gcluster.lifecycle.rolling.window import Window

__all__ = ["NodeService", "NodeUse", "Rolled", "ServiceSilent", "Window", "roll"]
