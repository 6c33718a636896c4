"""What GPUs cost that jobs leave idle: recording rules, and the prices that they start from."""

from .prices import node_prices
from .rules import INTERVAL_S, RecordingRule, recording_rules, waste_group

__all__ = ["INTERVAL_S", "RecordingRule", "node_prices", "recording_rules", "waste_group"]
