"""One or many specs: check them, load a folder of them, and find what clashes between clusters."""
