"""What a model needs: memory, layouts, step time and failures on machines of the catalog."""
