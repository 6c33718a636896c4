"""A rolling change: nodes leave service a few at a time, are changed, verified and given back."""

from .roll import Rolled, roll
from .window import Window

__all__ = ["Rolled", "Window", "roll"]
