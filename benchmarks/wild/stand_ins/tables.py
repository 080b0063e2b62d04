"""Stand-in tables: weather, patients, film ratings, traffic, point clouds."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np

from wild.stand_ins.images import random_of

WEATHER = (
    '"p (mbar)","T (degC)","Tpot (K)","Tdew (degC)","rh (%)","VPmax (mbar)","VPact (mbar)","VPdef (mbar)","sh (g/kg)",'
    '"H2OC (mmol/mol)","rho (g/m**3)","wv (m/s)","max. wv (m/s)","wd (deg)"'
)
HEART = "age,sex,cp,trestbps,chol,fbs,restecg,thalach,exang,oldpeak,slope,ca,thal,target"
GENRES = ("Action", "Comedy", "Drama", "Horror", "Thriller", "War")


def weather(folder: Path, rows: int, name: str = "jena_climate_2009_2016.csv") -> None:
    """A zip file with a table of 14 quantities every ten minutes."""
    random = random_of("weather")
    values = random.normal(10, 3, (rows, 14)).cumsum(axis=0) % 1000
    lines = [f'"Date Time",{WEATHER}']
    for index, row in enumerate(values):
        day, minute = divmod(index * 10, 1440)
        stamp = f"{day % 28 + 1:02}.{day // 28 % 12 + 1:02}.{2009 + day // 336} {minute // 60:02}:{minute % 60:02}:00"
        lines.append(stamp + "," + ",".join(f"{value:.2f}" for value in row))
    with zipfile.ZipFile(folder / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, "\n".join(lines) + "\n")


def heart(folder: Path, rows: int = 303) -> None:
    """`heart.csv`: patients, numbers of classes, measured values and one text column."""
    random, lines = random_of("heart"), [HEART]
    for _ in range(rows):
        draw = random.integers
        thal = ("fixed", "normal", "reversible")[draw(0, 3)]
        lines.append(
            f"{draw(29, 78)},{draw(0, 2)},{draw(0, 5)},{draw(94, 200)},{draw(126, 560)},{draw(0, 2)},{draw(0, 3)},"
            f"{draw(71, 203)},{draw(0, 2)},{random.uniform(0, 6):.1f},{draw(1, 4)},{draw(0, 4)},{thal},{draw(0, 2)}"
        )
    (folder / "heart.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def film_ratings(folder: Path, users: int, films: int, each: int) -> None:
    """`users.dat`, `movies.dat` and `ratings.dat` of MovieLens, separated by `::`."""
    random = random_of("films")
    ages = (1, 18, 25, 35, 45, 50, 56)
    people = [
        f"{user}::{'FM'[user % 2]}::{ages[user % 7]}::{user % 21}::{10000 + user}" for user in range(1, users + 1)
    ]
    titles = [f"{film}::Film {film} (1999)::{GENRES[film % 6]}|{GENRES[film % 5]}" for film in range(1, films + 1)]
    ratings = []
    for user in range(1, users + 1):
        for time, film in enumerate(random.integers(1, films + 1, each)):
            ratings.append(f"{user}::{film}::{int(random.integers(1, 6))}::{978300000 + time}")
    for name, lines in (("users", people), ("movies", titles), ("ratings", ratings)):
        (folder / f"{name}.dat").write_text("\n".join(lines) + "\n", encoding="latin-1")


def traffic(folder: Path, routes: int = 228, rows: int = 12672) -> None:
    """Two CSV files without a header: distances between routes, and speeds every five minutes."""
    random = random_of("traffic")
    distances = random.uniform(0, 20000, (routes, routes))
    np.savetxt(folder / "PeMSD7_W_228.csv", (distances + distances.T) / 2, "%.1f", delimiter=",")
    np.savetxt(folder / "PeMSD7_V_228.csv", random.uniform(20, 70, (rows, routes)), "%.1f", delimiter=",")


def point_clouds(folder: Path, count: int, points: int = 2500) -> None:
    """The layout of ShapeNet's part annotations: points of aeroplanes, and which of them belong to each part."""
    labels, place = ("wing", "body", "tail", "engine"), folder / "02691156"
    colours = ["blue", "green", "red", "pink"]
    metadata = {
        "Airplane": {"directory": "02691156", "lables": labels, "colors": colours}  # codespell:ignore lables
    }
    (folder / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    for name in ("points", *(f"points_label/{label}" for label in labels)):
        (place / name).mkdir(parents=True, exist_ok=True)
    for index in range(count):
        random = random_of("points", index)
        part = random.integers(0, len(labels), points)
        np.savetxt(place / "points" / f"{index:05}.pts", random.normal(0, 1, (points, 3)), "%.5f")
        for number, label in enumerate(labels):
            np.savetxt(place / "points_label" / label / f"{index:05}.seg", part == number, "%d")
