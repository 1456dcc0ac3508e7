"""Public tables as people have them: what is done with each column, and that what is stated is sane."""

from pathlib import Path

import pytest

import unless

TABLES = Path(__file__).parents[2].parent / "shared" / "data" / "tables"
pytestmark = pytest.mark.skipif(
    not TABLES.is_dir(), reason="the public tables lie beside the repository only"
)

PLANS = {
    "Arthritis": {
        "ID": "identifier, left out", "Treatment": "category, 2 levels", "Sex": "category, 2 levels",
        "Age": "number, cut at 50, 58, 62", "Improved": "category, 2 levels",
    },
    "Chile": {
        "region": "category, 5 levels", "population": "ordered, 10 levels", "sex": "category, 2 levels",
        "age": "number, cut at 25, 35, 40, 50", "education": "category, 3 levels",
        "income": "ordered, 7 levels", "statusquo": "number, cut at -1.1, -0.5, 0.5, 1",
        "vote": "category, 4 levels",
    },
    "HairEyeColor": {
        "Hair": "category, 4 levels", "Eye": "category, 4 levels", "Sex": "category, 2 levels",
        "Freq": "counts the rows",
    },
    "Mroz": {
        "work": "category, 2 levels, a function of hoursw", "hoursw": "number, cut at 1, 1,000, 1,750",
        "child6": "ordered, 3 levels: 0, 1, 2 or more",
        "child618": "ordered, 6 levels: 0, 1, 2, 3, 4, 5 or more", "agew": "number, cut at 35, 40, 45, 50",
        "educw": "number, cut at 12, 13", "hearnw": "number, cut at above 0, 2.5, 4",
        "wagew": "number, cut at above 0, 4", "hoursh": "number, cut at 1,900, 2,100, 2,250, 2,750",
        "ageh": "number, cut at 38, 44, 48, 54", "educh": "number, cut at 12, 13, 16",
        "wageh": "number, cut at 4, 6, 7.5, 10", "income": "number, cut at 15,000, 17,500, 22,500, 30,000",
        "educwm": "ordered, 7 levels: under 3, 3 to 6, 7 to 8, 9 to 11, 12 to 13, 14 to 15, 16 or more",
        "educwf": "ordered, 9 levels", "unemprate": "ordered, 7 levels", "city": "category, 2 levels",
        "experience": "number, cut at 4, 8, 12, 16",
    },
    "TitanicSurvival": {
        "rownames": "identifier, left out", "survived": "category, 2 levels", "sex": "category, 2 levels",
        "age": "number, cut at 20, 25, 32.5, 40",
        "passengerClass": "ordered, 3 levels: 1st, 2nd, 3rd",
    },
    "anes96": {
        "popul": "number, cut at 1, 20, 50, 250", "TVnews": "ordered, 8 levels",
        "selfLR": "ordered, 7 levels", "ClinLR": "ordered, 7 levels", "DoleLR": "ordered, 7 levels",
        "PID": "ordered, 7 levels", "age": "number, cut at 32, 40, 50, 60", "educ": "ordered, 7 levels",
        "income": "number, cut at 12, 16, 20, 22", "vote": "category, 2 levels",
        "logpopul": "copy of popul, left out",
    },
    "birthwt": {
        "low": "category, 2 levels, a function of bwt", "age": "number, cut at 20, 23, 26",
        "lwt": "number, cut at 110, 125, 150", "race": "category, 3 levels", "smoke": "category, 2 levels",
        "ptl": "ordered, 2 levels: 0, 1 or more", "ht": "category, 2 levels", "ui": "category, 2 levels",
        "ftv": "ordered, 4 levels: 0, 1, 2, 3 or more", "bwt": "number, cut at 2,500, 3,000, 3,500",
    },
    "car": {
        "buying": "ordered, 4 levels: low, med, high, vhigh",
        "maint": "ordered, 4 levels: low, med, high, vhigh", "doors": "category, 4 levels",
        "persons": "category, 3 levels", "lug_boot": "ordered, 3 levels: small, med, big",
        "safety": "ordered, 3 levels: low, med, high",
        "class": "category, 4 levels",
    },
    "fair": {
        "rate_marriage": "ordered, 5 levels", "age": "ordered, 6 levels", "yrs_married": "ordered, 7 levels",
        "children": "ordered, 6 levels", "religious": "category, 4 levels", "educ": "ordered, 6 levels",
        "occupation": "ordered, 6 levels", "occupation_husb": "ordered, 6 levels",
        "affairs": "number, cut at above 0, 1",
    },
    "monk3": {
        "a1": "category, 3 levels", "a2": "category, 3 levels", "a3": "category, 2 levels",
        "a4": "category, 3 levels", "a5": "category, 4 levels", "a6": "category, 2 levels",
        "class": "category, 2 levels",
    },
    "penguins": {
        "rownames": "identifier, left out", "species": "category, 3 levels", "island": "category, 3 levels",
        "bill_length_mm": "number, cut at 38, 42.5, 46, 50", "bill_depth_mm": "number, cut at 15, 17, 18, 19",
        "flipper_length_mm": "number, cut at 190, 195, 200, 215",
        "body_mass_g": "number, cut at 3,500, 3,750, 4,250, 5,000", "sex": "category, 2 levels",
        "year": "category, 3 levels",
    },
    "seattle_weather": {
        "date": "date, kept as year, month, weekday", "precipitation": "number, cut at above 0, 5",
        "temp_max": "number, cut at 10, 14, 17.5, 25", "temp_min": "number, cut at 4, 7.5, 10, 12.5",
        "wind": "number, cut at 2, 2.75, 3.5, 4.5", "weather": "category, 5 levels",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PLANS)
def test_the_plan_line_by_line(name):
    plan = unless.prepare(TABLES / f"{name}.csv")
    assert {one.name: one.done for one in plan.lines} == PLANS[name]
    assert unless.Plan.from_dict(plan.to_dict()) == plan


# Columns that would make learning take more than some seconds.
LESS = {
    "fair": ["age", "yrs_married", "children", "occupation_husb"],
    "anes96": ["ClinLR", "DoleLR", "TVnews", "popul"],
}


def learned(name):
    return unless.learn(TABLES / f"{name}.csv", exclude=LESS.get(name), show_progress=False)


def kinds(est, *pairs):
    said = [est.statements_.about(*pair.split(" - ")) for pair in pairs]
    return {one.kind for one in said if one is not None and (one.is_finding or one.kind == "associated")}, [
        pair
        for pair, one in zip(pairs, said, strict=True)
        if one is None or not (one.is_finding or one.kind == "associated")
    ]


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("HairEyeColor", ["Eye - Hair"]),
        ("Chile", ["vote - statusquo", "vote - education", "vote - sex", "vote - age"]),
        ("penguins", ["species - island", "species - bill_length_mm", "sex - body_mass_g"]),
        ("TitanicSurvival", ["survived - sex", "survived - passengerClass"]),
        ("birthwt", ["race - smoke"]),
        ("fair", ["affairs - rate_marriage"]),
        ("anes96", ["PID - vote"]),
        ("monk3", ["a5 - class"]),
        ("car", ["class - safety"]),
        ("seattle_weather", ["date (month) - temp_max", "precipitation - weather"]),
        ("Mroz", ["educh - educw"]),
        ("Arthritis", []),
    ],
)
def test_what_is_stated_is_sane(name, pairs):
    est = learned(name)
    assert kinds(est, *pairs)[1] == []
    assert est.statements_.lines()


def test_birth_weights():
    est = learned("birthwt")
    low = est.statements_.about("low", "bwt")
    assert (low.kind, low.source, low.is_finding) == ("determined", "bwt", True)
    ftv = est.statements_.about("bwt", "ftv")
    assert ftv is None or not ftv.is_finding


def test_missing_ages_are_said():
    est = learned("TitanicSurvival")
    said = (
        "263 of 1,309 rows lack 'age' (263): learners leave them out, tests and networks use what they have."
    )
    assert said in est.notes_
