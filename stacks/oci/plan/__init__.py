"""What a site on OCI is made of, as plain values: no SDK, no clock, no network."""
