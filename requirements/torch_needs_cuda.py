"""Exit status 1 where the installed torch needs the CUDA libraries of requirements/cuda.txt, 0 where it does not."""

import sys
from importlib.metadata import requires

needs = any(line.startswith(("cuda-", "nvidia-", "triton")) for line in requires("torch") or ())
sys.exit(sys.platform == "linux" and needs)
