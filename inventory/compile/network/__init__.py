"""Networks: links between sites, and the fabrics that carry the GPUs' traffic (pure)."""
