"""What the command line says of accuracy on held-out units."""

from imprimatur.cli.reporting import accuracy_in_words

FOUND = {
    "target": "rich\x1b[2J",
    "accuracy": 0.8123,
    "low": 0.79,
    "high": 0.8346,
    "held_out_units": 4521,
    "most_frequent": {"value": True, "share": 0.52, "noise_std": 0.01},
}


def test_it_names_the_accuracy_its_bounds_and_what_a_guess_would_reach():
    said = accuracy_in_words(FOUND)
    assert "right in 81.2% of the rows of 4,521 held-out units" in said
    assert "between 79.0% and 83.5%" in said
    assert "about 52.0% (between 50.0% and 54.0%)" in said
    few = {**FOUND, "most_frequent": {"value": True, "share": 1.0, "noise_std": 2.0}}
    assert "about 100.0% (between 0.0% and 100.0%)" in accuracy_in_words(few)
    assert "\x1b" not in said
