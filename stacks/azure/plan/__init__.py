"""What a site is made of, as plain values: no SDK, no clock, no network."""
