"""What GPUs cost that jobs leave idle: recording rules, and the prices that they start from."""

from .rules import INTERVAL_S, RecordingRule, node_prices, recording_rules, waste_group

__all__ = ["INTERVAL_S", "RecordingRule", "node_prices", "recording_rules", "waste_group"]
