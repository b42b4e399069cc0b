"""What a published generator consists of: its networks as ONNX, its card, the sampler that ships with it."""
