"""Jobs: the AllReduce at the end of `up`, templates of what accounts start, nodes that come."""
