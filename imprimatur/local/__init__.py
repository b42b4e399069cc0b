"""Frequencies of values that no server ever sees: each person's device sends a randomised report, and many reports are counted.

    from imprimatur.local import OUE

    oue = OUE(["bus", "car", "bicycle"], epsilon=1.0)
    print(oue)                       # ε of one report, and of all reports for ever
    report = oue.reporter().report("bus")   # on the device
    oue.estimate(reports)            # where reports are collected

- `OUE`: optimised unary encoding, for a declared list of values.
- `Rappor`: Bloom filter, permanent and instantaneous response, for values that are not listed beforehand.

No ledger is needed: the promise is kept on the device, before anything is sent. docs/local.md
"""

from imprimatur.local.estimates import Estimates, InvalidReport
from imprimatur.local.oue import OUE, OueReporter
from imprimatur.local.rappor import Rappor, RapporReporter

__all__ = ["OUE", "Estimates", "InvalidReport", "OueReporter", "Rappor", "RapporReporter"]
