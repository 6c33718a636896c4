"""Text and documents of the verbs that plan and change clusters."""
