"""Clocks that `advise` chooses without a platform, against what was measured (tests/accuracy.sh).

    no_device.py PROGRAM SWEEP...

Of each workload it gets the rows at 70 % of the top clock and at the top; or it gets one row after the other as it asks
for them, up to four, and the cheapest measured row within the bound is the answer. Saved: energy saved as a share of what
the best measured clock within the bound saves. Broken: the slowdown is above the bound; of a clock between two rows, by
the line between them. Means over boards, each workload alike. Exit status 1 where a goal is missed."""
import csv
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

PROGRAM, SWEEPS = sys.argv[1], sys.argv[2:]
LEAST_CLOCKS, MOST_ROWS = 4, 4
missed = []


def load(path):
    """{workload: {MHz: (s, W)}} at the highest memory clock and the highest power limit; kernels are added up."""
    with open(path, encoding="utf-8") as f:
        rows = [r for r in csv.DictReader(line for line in f if line[0] != "#")]
    of = {}
    for r in rows:
        key = (float(r["mem_mhz"] or 0), float(r.get("power_cap_w") or 0))
        of.setdefault(key, []).append(r)
    out, kernels = {}, {}
    for r in of[max(of)]:
        at = out.setdefault(r["workload"], {}).setdefault(float(r["sm_mhz"]), [0.0, 0.0, 0])
        at[0] += float(r["time_s"])
        at[1] += float(r["time_s"]) * float(r["power_w"])
        at[2] += 1
        kernels.setdefault(r["workload"], set()).add(r["kernel"])
    return {w: {mhz: (t, e / t) for mhz, (t, e, n) in d.items() if n == len(kernels[w])}
            for w, d in out.items() if len(d) >= LEAST_CLOCKS}


def near(clocks, mhz):
    return min(clocks, key=lambda f: abs(f - mhz))


def above(clocks, mhz):
    return min((f for f in clocks if f >= mhz - 0.5), default=max(clocks))


def advise(asked, bound):
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as f:
        f.write("workload,sm_mhz,time_s,power_w\n")
        for w, rows in asked.items():
            f.writelines(f"{w},{mhz:g},{t!r},{p!r}\n" for mhz, (t, p) in rows.items())
        f.flush()
        done = subprocess.run([PROGRAM, "advise", f.name, "--bound", str(bound), "--json"], capture_output=True,
                              text=True, check=False)
    if done.returncode:
        sys.exit(f"advise: {done.stderr}")
    return {r["workload"]: r for r in json.loads(done.stdout)["advice"]}


def score(data, chosen, bound):
    """(broken share, share broken by more than half a point, saved share, rows) of the chosen clocks."""
    broken, much, saved, best = [], [], 0.0, 0.0
    for w, mhz in chosen.items():
        d = data[w]
        energy = {f: t * p for f, (t, p) in d.items()}
        top_s, top_j = d[max(d)][0], energy[max(d)]
        t, e = d[above(d, mhz)][0], energy[above(d, mhz)]
        broken.append(t > (1 + bound) * top_s * (1 + 1e-9))
        much.append(t > (1 + bound + 0.005) * top_s)
        saved += 1 - e / top_j
        best += 1 - min(energy[f] for f in d if d[f][0] <= (1 + bound) * top_s) / top_j
    return 100 * statistics.fmean(broken), 100 * statistics.fmean(much), 100 * saved / best if best else math.nan


def two_rows(data, bound):
    asked = {w: {f: d[f] for f in (near(d, 0.7 * max(d)), max(d))} for w, d in data.items()}
    return {w: r["sm_mhz"] for w, r in advise(asked, bound).items()}, 2


def in_turn(data, bound):
    asked = {w: {f: d[f] for f in (near(d, 0.7 * max(d)), max(d))} for w, d in data.items()}
    for _ in range(MOST_ROWS - 2):
        for w, r in advise(asked, bound).items():
            if r["measure_sm_mhz"] is not None and min(data[w]) <= r["measure_sm_mhz"]:
                f = above(data[w], r["measure_sm_mhz"])
                asked[w][f] = data[w][f]
    chosen = {}
    for w, rows in asked.items():
        held = [f for f in rows if rows[f][0] <= (1 + bound) * rows[max(rows)][0]]
        chosen[w] = min(held, key=lambda f: rows[f][0] * rows[f][1])
    return chosen, statistics.fmean(len(rows) for rows in asked.values())


def line(name, way, goal_broken, of_much, goal_saved):
    for bound in (0.05, 0.10):
        boards = []
        for path in SWEEPS:
            data = load(path)
            if not data:
                continue
            chosen, rows = way(data, bound)
            boards.append((os.path.basename(path)[:-4], *score(data, chosen, bound), rows))
        broken = statistics.fmean(b[2 if of_much else 1] for b in boards)
        saved = statistics.fmean(b[3] for b in boards)
        worst = min(boards, key=lambda b: b[3])
        ok = broken <= goal_broken and saved >= goal_saved
        if not ok:
            missed.append(name)
        print(f"no device, {name}, bound {100 * bound:.0f} %: {statistics.fmean(b[4] for b in boards):.1f} rows, broken"
              f"{' by > 0.5 points' if of_much else ''} {broken:.1f} % ({goal_broken:g}), saved {saved:.0f} % "
              f"({goal_saved:g}); worst {worst[0]}: saved {worst[3]:.0f} %{'' if ok else '   missed'}")


line("70 % and top", two_rows, 5, False, 85)
line("in turn", in_turn, 0, True, 93)
sys.exit(1 if missed else 0)
