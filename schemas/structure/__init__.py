"""Whether plain data has the structure of the spec, and every place where it has not."""
