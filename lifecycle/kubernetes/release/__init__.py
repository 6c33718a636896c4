"""The Kubernetes that gcluster brings: programs, images and add-ons, with their versions."""
