"""The table of harness/experiments/serving.md, from the CSV of its comparison.

serving_page.py RESULT.csv PAGE...    puts the table in the place of the one that each page has
"""
import csv
import sys

COLUMNS = ["ecofreq", "throttllem", "agft", "polca", "assure:theta=0.9", "utilizscale"]
HEAD = ("| load (requests/s) | actuator latency | best static | " +
        " | ".join(c.replace(":theta=", " ") for c in COLUMNS) + " |")


def rows(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(line for line in f if not line.startswith("#")))


def percent(text):
    return f"{round(float(text), 1) + 0.0:.1f}"  # no -0.0


def cell(row):
    return f"{percent(row['energy_saving_pct'])} / {percent(-float(row['saving_static_pct']))}" + \
        (" !" if int(row["violated"]) else "")


def table(path):
    by_place = {}
    for row in rows(path):
        if row["workload"] == "mean":
            continue
        variant = row["workload"].partition(" [")[2].rstrip("]") or "medium, 20ms"
        by_place.setdefault(tuple(variant.split(", ")), {})[row["policy"]] = row
    lines = [HEAD, "|---" * (3 + len(COLUMNS)) + "|"]
    for load in ["light", "medium", "heavy"]:
        for takes in ["0ms", "20ms", "100ms"]:
            of = by_place[load, takes]
            rate = float(of["baseline:default"]["served_rps"])
            static = of["baseline:static"]
            clock = static["clock"].replace("sm_mhz=", "")
            lines.append(f"| {load} ({rate:.2g}) | {takes[:-2]} ms | {percent(static['energy_saving_pct'])} ({clock} MHz) | " +
                         " | ".join(cell(of[c]) for c in COLUMNS) + " |")
    return lines


def put(lines, page):
    with open(page) as f:
        text = f.read().split("\n")
    at = text.index(HEAD)
    end = at
    while text[end].startswith("|"):
        end += 1
    text[at:end] = lines
    with open(page, "w") as f:
        f.write("\n".join(text))


if __name__ == "__main__":
    made = table(sys.argv[1])
    for name in sys.argv[2:]:
        put(made, name)
