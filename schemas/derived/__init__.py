"""What follows from a spec alone: which nodes see which storage, which sites reach each other."""
