"""Verbs that plan and change clusters."""
