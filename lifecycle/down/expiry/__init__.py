"""Clusters that end by themselves: when their time is up, or when nobody uses them."""
