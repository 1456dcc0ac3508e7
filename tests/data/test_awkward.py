"""Ten tables as people have them, made up and small: what is done with each column at the first try."""

import csv
import datetime as dt

import numpy as np
import pytest

import unless

N = 240


def survey(rng, i):
    programs = rng.random() < 0.5
    chances = (("Excel", 0.6), ("Python", 0.8 if programs else 0.1), ("SPSS", 0.2))
    tools = [one for one, p in chances if rng.random() < p] or ["None"]
    place = min(4, max(0, int(rng.normal(3 if programs else 1.5, 1))))
    return {
        "ResponseId": f"R_{i:05x}",
        "Age": rng.choice(["18-24", "25-34", "35-64", "65+"]),
        "Which tools?": ";".join(tools),
        "Do you program?": "Yes" if programs else "No",
        "Fun": ["Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"][place],
        "Comments": "" if rng.random() < 0.7 else f"a long comment on question number {i}",
    }


def forms(rng, i):
    moment = dt.datetime(2023, 3, 1) + dt.timedelta(minutes=int(rng.integers(0, 60 * 24 * 20)))
    pets = [one for one, p in (("Cat", 0.4), ("Dog", 0.5), ("Fish", 0.2)) if rng.random() < p]
    return {
        "Timestamp": f"{moment:%m/%d/%Y %H:%M:%S}",
        "Which pets?": ", ".join(pets),
        "Rate us": int(rng.integers(1, 6)),
        "Price": rng.choice(["Not at all important", "Slightly important", "Very important"]),
        "Email": f"a{i}@example.org",
    }


def bank(rng, i):
    kind = rng.choice(["groceries", "rent", "fun", "salary"], p=[0.4, 0.1, 0.4, 0.1])
    mean = {"groceries": -45, "rent": -900, "fun": -20, "salary": 2500}[kind]
    text = f"{mean * rng.uniform(0.5, 1.5):,.2f}".translate(str.maketrans(",.", ".,"))
    day = dt.date(2022, 1, 3) + dt.timedelta(days=2 * i)
    return {"Buchung": f"{day:%d.%m.%Y}", "Kategorie": kind, "Betrag": f"{text} €", "Zweck": f"Ref {i * 977}"}


def hospital(rng, _):
    hours = int(rng.integers(0, 1400 * 24))
    severity = rng.choice(["mild", "moderate", "severe"])
    return {
        "patient_id": f"P{rng.integers(1, 90):04d}",
        "admitted": f"{dt.datetime(2019, 1, 1) + dt.timedelta(hours=hours):%Y-%m-%dT%H:%M:%S}+01:00",
        "days": {"mild": 2, "moderate": 5, "severe": 9}[severity] + int(rng.poisson(2)),
        "severity": severity,
        "blood": rng.choice(["A", "B", "AB", "0"]),
    }


def orders(rng, i):
    color, price = rng.choice(["red", "blue", "green"]), rng.gamma(5, 300)
    day = dt.date(2021, 1, 1) + dt.timedelta(days=int(rng.integers(0, 700)))
    return {
        "order id": 100_000 + i,
        "order date": f"{day:%m/%d/%Y}",
        "total": f"${price:,.2f}",
        "discount": f"{rng.choice([0, 5, 10, 20])}%",
        "weight": f"{rng.gamma(4, 3):.1f} kg",
        "size": rng.choice(["S", "M", "L", "XL"]),
        **{f"color_{one}": int(color == one) for one in ("red", "blue", "green")},
        "returned": "Y" if rng.random() < (0.6 if price > 1500 else 0.1) else "N",
        "zip": rng.choice(["10001", "02139", "94103"]),
    }


def grades(rng, i):
    skill = rng.normal()

    def grade():
        return ["F", "D", "C", "C+", "B", "B+", "A-", "A"][int(np.clip(round(4 + 2 * skill), 0, 7))]

    return {
        "student": i + 1,
        "year": rng.choice(["Freshman", "Sophomore", "Junior", "Senior"]),
        "math grade": grade(),
        "attendance": f"{np.clip(80 + 10 * skill + 5 * rng.normal(), 40, 100):.0f}%",
    }


def sensor(rng, i):
    moment = dt.datetime(2024, 5, 1) + dt.timedelta(minutes=90 * i)
    heat = 15 + 5 * np.sin(moment.hour / 24 * 6.28) + rng.normal()
    return {
        "time": moment.isoformat(sep=" "),
        "heat": f"{heat:.1f}" if i % 60 else "ERR",
        "damp": f"{60 - 2 * (heat - 15) + rng.normal():.0f}",
        "version": "0x1F",
    }


def staff(rng, i):
    level = int(rng.integers(0, 4))
    return {
        "Employee ID": f"E{i:04d}",
        "Name": f"Smith{i}, John",
        "Level": ["Junior", "Mid", "Senior", "Lead"][level],
        "Salary": f"{40_000 + 15_000 * level + rng.normal() * 6_000:,.0f}",
        "Hire date": f"{dt.date(2005, 1, 1) + dt.timedelta(days=int(rng.integers(0, 6500))):%d/%m/%Y}",
        "Experience": rng.choice(["<1 year", "1-3 years", "4-9 years", "10+ years"]),
        "Left": rng.choice(["Yes", "No"]),
    }


def poll(rng, i):
    side = int(rng.integers(0, 11))
    answers = ["Very dissatisfied", "Dissatisfied", "Neutral", "Satisfied", "Very satisfied"]
    place = int(np.clip(round(side / 2.5 + rng.normal()), 0, 4))
    return {
        "left-right": side,
        "content": answers[place] if i % 40 else "Don't know",
        "income": rng.choice(["Less than $25,000", "$25,000 to $49,999", "$50,000 or more"]),
        "vote": "Right" if rng.random() < side / 10 else "Left",
        "day": rng.choice(["Monday", "Tuesday", "Wednesday"]),
    }


def lab(rng, i):
    sick = rng.random() < 0.3
    crp = rng.gamma(1.2, 25 if sick else 4)
    return {
        "sex": rng.choice(["f", "m"]),
        "CRP": "<5" if crp < 5 else f"{crp:.1f}",
        "TSH": f"{rng.lognormal(0.5, 0.6):.2f}" if i % 60 else "hemolysed",
        "eGFR": ">60" if rng.random() < 0.5 else str(rng.integers(15, 60)),
        "test": "positive" if sick else "negative",
        "heat": f"{rng.normal(37.6 if sick else 36.8, 0.4):.1f}".replace(".", ","),
        "drawn": f"{rng.integers(7, 19):02d}:{rng.integers(0, 60):02d}",
    }


ROLES = {
    survey: "identifier ordered choices category ordered text",
    forms: "date choices ordered ordered identifier",
    bank: "date category number identifier",
    hospital: "identifier date number ordered category",
    orders: "identifier date number ordered number ordered category joined joined joined category category",
    grades: "identifier ordered ordered number",
    sensor: "date number number constant",
    staff: "identifier identifier ordered number date ordered category",
    poll: "number ordered ordered category category",
    lab: "category number number number category number date",
}


@pytest.fixture
def table(request, tmp_path):
    rng = np.random.default_rng(8)
    rows = [request.param(rng, i) for i in range(N)]
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0], delimiter=";" if request.param in (bank, lab) else ",")
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize(
    ("table", "roles"), ROLES.items(), indirect=["table"], ids=[one.__name__ for one in ROLES]
)
def test_what_is_done_with_each_column(table, roles):
    plan = unless.prepare(table)
    assert [one.role for one in plan.lines] == roles.split()
    data = unless.read(table)
    assert unless.read(table, plan=unless.Plan.from_dict(plan.to_dict())) == data


@pytest.mark.parametrize(
    ("table", "pairs"),
    [
        (survey, ["Do you program? - Which tools?: Python", "Do you program? - Fun"]),
        (orders, ["returned - total"]),
        (staff, ["Level - Salary"]),
        (lab, ["heat - test"]),
    ],
    indirect=["table"],
    ids=["survey", "orders", "staff", "lab"],
)
def test_what_is_said_is_what_was_made(table, pairs):
    found = unless.learn(table, show_progress=False).statements_.findings
    assert {" - ".join(one.pair) for one in found} >= set(pairs)
    assert len(found) <= len(pairs) + 2
