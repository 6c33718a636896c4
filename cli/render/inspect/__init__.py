"""Text and documents of the verbs that show what is there."""
