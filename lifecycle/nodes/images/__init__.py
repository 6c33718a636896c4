"""Golden images: the install phases of all roles, run once, before a node boots from them."""
