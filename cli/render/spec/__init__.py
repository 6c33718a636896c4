"""Text and documents of the verbs that write, check and price specs."""
