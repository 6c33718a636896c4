"""Jobs: the AllReduce at the end of `up`, and templates of what accounts start."""
