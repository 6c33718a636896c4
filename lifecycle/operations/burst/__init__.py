"""Work that spills from a site's own nodes to rented ones: who moves, and what that would bring."""
