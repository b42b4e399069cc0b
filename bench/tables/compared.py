"""The tables that docs/results/tables.md compares methods on, as it tells them apart."""

from __future__ import annotations

from typing import NamedTuple


class Table(NamedTuple):
    name: str
    title: str
    rows: int
    """To train on."""
    columns: int


GROUPS: dict[str, tuple[Table, ...]] = {
    "first": (
        Table("adult", "Adult, income", 32_561, 15),
        Table("poker", "Poker Hand, class", 25_010, 11),
        Table("elderly_visits", "elderly visits, who is privately insured", 3_525, 19),
        Table("doctor_visits", "doctor visits, who is out of work", 15_688, 16),
        Table("household_food", "household food", 19_177, 6),
        Table("vietnam_health", "Vietnamese households", 22_212, 12),
        Table("health_insurance", "health insurance, whose own it is", 17_818, 13),
        Table("flchain", "free light chains, who died", 6_300, 10),
        Table("unemployment_benefits", "unemployment benefits", 3_902, 17),
        Table("diamonds", "diamonds, how well cut", 43_152, 10),
        Table("movies", "films", 47_031, 23),
        Table("baseball", "baseball", 17_308, 20),
        Table("computers", "computers, premium", 5_008, 10),
        Table("star", "star, free lunch", 4_599, 8),
        Table("bfi", "personality, gender", 2_240, 28),
        Table("vietnamh", "Vietnamese homes, urban", 4_800, 11),
        Table("epi", "57 yes or no", 2_620, 57),
        Table("msq", "moods", 3_104, 92),
    ),
    "second": (
        Table("tuna", "tuna, which brand", 10_964, 6),
        Table("doctor_australia", "visits in Australia, how insured", 4_152, 15),
        Table("medical_expenses", "medical expenses, how healthy", 4_460, 15),
        Table("verbal_aggression", "verbal aggression, yes or no", 6_068, 8),
        Table("young_men", "young men, in a union", 3_488, 11),
        Table("schooling", "schooling, who is black", 4_180, 16),
        Table("working_hours", "working hours, which occupation", 2_706, 12),
        Table("cars", "cars, which choice", 3_724, 70),
    ),
    "third": (
        Table("catsup", "catsup, which brand", 2_239, 13),
        Table("job_training", "job training, who was treated", 2_140, 10),
        Table("aids", "AIDS in Australia, who died", 2_275, 7),
        Table("chile", "Chile, which vote", 2_026, 8),
        Table("yogurt", "yogurt, which brand", 1_930, 9),
        Table("colon_cancer", "colon cancer, who died or fell ill again", 1_487, 14),
        Table("unemployment_spells", "spells without work, who was insured", 2_675, 11),
        Table("kakadu", "Kakadu, what was answered", 1_462, 22),
        Table("train_choice", "trains, which of two", 2_344, 9),
        Table("wilms_tumour", "Wilms' tumour, who fell ill again", 3_223, 8),
        Table("ketchup", "ketchup, which brand", 3_965, 5),
        Table("patents", "patents, which firms are of science", 1_384, 16),
        Table("ability", "ability, one of sixteen questions", 1_168, 16),
        Table("labour_supply", "labour supply, who is disabled", 4_256, 6),
        Table("pneumonia", "pneumonia, whose mother smoked", 2_776, 15),
    ),
    "fourth": (
        Table("default", "credit cards, who defaults", 8_000, 4),
        Table("affairs", "marriages, how happy", 5_093, 9),
        Table("orange_juice", "orange juice, which brand", 856, 18),
        Table("crop_insurance", "crop insurance, who takes it", 1_128, 11),
        Table("wages", "wages, who is insured", 2_400, 11),
        Table("arrests", "arrests, who is black", 2_180, 16),
        Table("grades", "grades, who is a woman", 3_310, 12),
        Table("pensions", "pensions, who is eligible", 7_420, 11),
        Table("hiv_trial", "HIV trial, who was censored", 1_712, 26),
        Table("rand_health", "doctor visits of RAND, which plan", 16_152, 10),
        Table("fertility", "fertility, who uses a method", 3_432, 27),
        Table("bikeshare", "bicycles hired, on which days", 6_916, 15),
        Table("wives", "wives, who works", 4_508, 24),
        Table("injuries", "injuries, who earns much", 5_720, 30),
        Table("mothers", "mothers of a third child", 25_486, 20),
        Table("veterans", "veterans, who owns a home", 171_316, 6),
    ),
    "fifth": (
        Table("credit_status", "loans, who pays back", 3_564, 14),
        Table("lending", "lending club, good or bad", 7_886, 23),
        Table("phone_churn", "telephone customers, who leaves", 4_000, 20),
        Table("attrition", "employees, who leaves", 1_176, 31),
        Table("programmers", "programmers, who works from afar", 4_476, 21),
        Table("computing_jobs", "computing jobs, how long", 3_465, 8),
        Table("telco_churn", "internet customers, who leaves", 5_635, 20),
        Table("wages_1988", "wages of 1988, who works part of the time", 22_524, 7),
        Table("insured", "insured, who", 7_042, 11),
        Table("vocabulary", "vocabulary, who was born there", 23_024, 8),
        Table("poverty", "poverty, what is done against it", 4_305, 6),
        Table("british_votes", "British votes", 1_220, 10),
        Table("spam", "spam", 3_137, 20),
        Table("resumes", "résumés, who was called back", 3_896, 29),
        Table("storms", "storms, of which kind", 15_630, 12),
        Table("votes_2016", "votes of 2016", 35_946, 17),
    ),
    "made_up": (
        Table("chain", "chain", 16_000, 20),
        Table("survey", "survey, arrears", 16_000, 15),
    ),
    "few": (
        Table("breast_cancer", "breast cancer", 456, 31),
        Table("wine", "wine", 143, 14),
        Table("digits", "digits", 1_438, 65),
        Table("diabetes", "diabetes", 354, 11),
    ),
    "limits": (Table("parity", "parity of five columns", 16_000, 11),),
}
INTERACTIONS = (*GROUPS["limits"], *(table for table in GROUPS["first"] if table.name == "poker"))
"""Tables whose target depends on many columns at once and shows in no pair."""
