"""Methods of smartnoise-synth with their defaults, in its own environment (see peers.py): `python peer_smartnoise.py REQUEST.json`."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from snsynth import Synthesizer

ask = json.loads(Path(sys.argv[1]).read_text())
torch.manual_seed(ask["seed"])
np.random.seed(ask["seed"])  # noqa: NPY002 - what these methods draw from
names = [f"c{place}" for place in range(len(ask["widths"]))]
rows = pd.DataFrame(np.load(ask["codes"]), columns=names)
method = Synthesizer.create(ask["method"], epsilon=ask["epsilon"], delta=ask["delta"], verbose=False)
method.fit(rows, categorical_columns=names, preprocessor_eps=0.0)
made = pd.DataFrame(method.sample(ask["rows"]))
made.columns = names
np.save(ask["reply"], made.to_numpy(dtype=np.int64))
