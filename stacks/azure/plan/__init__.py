"""What a site on Azure is made of, as plain values: no SDK, no clock, no network."""
