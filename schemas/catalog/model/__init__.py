"""What an entry of the catalog is: machine, family, fabric, provider, artefact source, add-on."""
