"""The sampler of tables. Needs numpy and onnxruntime, nothing else.

`service.samples.shipped` joins these modules into the `sample.py` of a bundle. So their imports stand at the top, and no
two modules define the same name. Python 3.10 must be able to run them.
"""
