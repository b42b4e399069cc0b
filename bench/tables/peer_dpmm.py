"""AIM and MST of dpmm with their defaults, in its own environment (see peers.py): `python peer_dpmm.py REQUEST.json`."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from dpmm.models.aim import AIMGM
from dpmm.models.mst import MSTGM
from dpmm.pipelines.base import GenerativePipeline

ask = json.loads(Path(sys.argv[1]).read_text())
model = {"aim": AIMGM, "mst": MSTGM}[ask["method"]](epsilon=ask["epsilon"], delta=ask["delta"])
pipeline = GenerativePipeline(model)  # the cells are public and given: nothing to bin, nothing to pay for it
names = [f"c{place}" for place in range(len(ask["widths"]))]
rows = pd.DataFrame(np.load(ask["codes"]), columns=names)
pipeline.fit(rows, dict(zip(names, ask["widths"], strict=True)), random_state=ask["seed"])
made = pipeline.generate(n_records=ask["rows"], random_state=ask["seed"])
np.save(ask["reply"], made[names].to_numpy(dtype=np.int64))
