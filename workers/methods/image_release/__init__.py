"""The run side of `method: image_release`."""
