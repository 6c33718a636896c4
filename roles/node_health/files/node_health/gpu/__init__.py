"""GPUs: what the drivers, NVLink and the kernel's log say of them."""
