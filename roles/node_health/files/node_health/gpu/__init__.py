"""GPUs: checks of the drivers, NVLink and the kernel's log."""
