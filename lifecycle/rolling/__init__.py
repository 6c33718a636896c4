"""A rolling change: nodes leave service a few at a time, are changed, verified and given back."""

from .roll import Rolled, roll
from .service import NodeService, NodeUse, ServiceSilent
from .window import Window

__all__ = ["NodeService", "NodeUse", "Rolled", "ServiceSilent", "Window", "roll"]
