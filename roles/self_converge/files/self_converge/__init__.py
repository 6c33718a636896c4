"""A node that sets itself up from a signed bundle, and the desk on the controller that it tells."""
