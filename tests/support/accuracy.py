"""Predictions and choices of clocks on measured boards, against what was measured (tests/accuracy.sh).

    accuracy.py [--risk] [--former FORMER] PROGRAM SWEEP...

Of each sweep: its highest memory clock, and its highest power limit but for the rows of caps. A board's ladder is the
clocks at which it was measured, so that each choice has a measured time and power. Each workload counts alike within a
board, and each board within a mean. The questions:

  no device, 70 % + top   rows at 70 % of the top clock and at the top; `fit workload` and `advise` without a platform
  no device, in turn      one row after the other as `advise` asks for them, up to four; the cheapest measured row
                          within the bound is the answer
  device, two rows        a device fitted to half of the board's workloads, the other half asked: 70 % and the top
  device, four rows       the same, with 55 and 85 % too
  caps, three rows        the highest, a middle and the lowest power limit that binds; no device, and no clock is known

Errors: mean absolute errors in percent at settings that were not used, between the rows (of caps: at all others).
Broken: share of the chosen clocks whose slowdown is above the bound. Saved: energy saved, as a share of what the best
measured clock within the bound saves. FORMER is another program, whose lines stand below. Exit status 1 where a goal is
missed.

--risk prints the table of `needed` in models/chip/chip.c: by how many stated deviations a prediction must lie below the
bound so that at most a share of the choices breaks it, and what that table gives on a board whose family took no part."""
import argparse
import csv
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile

LEAST_CLOCKS, LEAST_CAPS, MOST_ROWS, MOST_FITTED = 4, 5, 4, 16
SHARES = {2: (0.7, 1), 4: (0.55, 0.7, 0.85, 1)}
BOUNDS, RISKS = (0.05, 0.10), (0.01, 0.02, 0.05, 0.10)
WORK = tempfile.TemporaryDirectory()
missed = []


def read(path):
    with open(path, encoding="utf-8") as f:
        lines = f.readlines()
    head = [line for line in lines if line[0] == "#"]
    rows = list(csv.DictReader(line for line in lines if line[0] != "#"))
    platform = next((m.group(1) for m in (re.match(r"# *platform: *(\S+)", line) for line in head) if m), None)
    return rows, platform


def number(row, key):
    return float(row.get(key) or "nan")


def summed(rows, key):
    """{workload: {setting: (s, W)}}; kernels are added up, and settings where one has no row are left out."""
    out, kernels = {}, {}
    for r in rows:
        power = number(r, "power_w") if r.get("power_w") else number(r, "energy_j") / number(r, "time_s")
        at = out.setdefault(r["workload"], {}).setdefault(number(r, key), [0.0, 0.0, set()])
        at[0] += number(r, "time_s")
        at[1] += number(r, "time_s") * power
        at[2].add(r.get("kernel"))
        kernels.setdefault(r["workload"], set()).add(r.get("kernel"))
    return {w: {x: (t, e / t) for x, (t, e, k) in d.items() if k == kernels[w] and e > 0} for w, d in out.items()}


class Board:
    def __init__(self, path):
        self.name = os.path.basename(path)[:-4]
        rows, self.platform = read(path)
        mem = max((number(r, "mem_mhz") for r in rows if r.get("mem_mhz")), default=None)
        rows = [r for r in rows if mem is None or number(r, "mem_mhz") == mem]
        limits = {number(r, "power_cap_w") for r in rows if r.get("power_cap_w")}
        free = [r for r in rows if r.get("sm_mhz") and (not limits or number(r, "power_cap_w") == max(limits))]
        self.clocks = {w: d for w, d in summed(free, "sm_mhz").items() if len(d) >= LEAST_CLOCKS}
        top = max((number(r, "sm_mhz") for r in rows if r.get("sm_mhz")), default=None)
        held = [r for r in rows if limits and (top is None or number(r, "sm_mhz") == top)]
        self.caps = {w: d for w, d in summed(held, "power_cap_w").items() if len(d) >= LEAST_CAPS}

        self.ladder = os.path.join(WORK.name, f"{self.name}.board.json")
        with open(self.ladder, "w", encoding="utf-8") as f:
            json.dump({"foldline_board": 1, "title": self.name, "name": self.name, "mem_mhz": [1000],
                       "sm_mhz": sorted({round(x) for d in self.clocks.values() for x in d}),
                       "notes": {"mem_mhz": "assumed", "sm_mhz": "measured"}}, f)

    def family(self):
        """Boards of one chip: v100-300w and v100b-activity; gtx-titan-x and gtx-titan-x-micro."""
        return re.sub(r"b$", "", re.sub(r"[-_]?(micro|activity|[0-9]+w|lock.*|raw)\b.*", "", self.name))


def near(settings, x):
    return min(settings, key=lambda f: abs(f - x))


def above(settings, x):
    return min((f for f in settings if f >= x - 0.5), default=max(settings))


def taken(d, shares):
    return sorted({near(d, share * max(d)) for share in shares})


def write(data, settings, key="sm_mhz"):
    path = os.path.join(WORK.name, f"{len(os.listdir(WORK.name))}.csv")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"workload,{key},time_s,power_w\n")
        for w, d in data.items():
            f.writelines(f"{w},{x:g},{d[x][0]!r},{d[x][1]!r}\n" for x in settings(d))
    return path


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{' '.join(command)}: {done.stderr}", file=sys.stderr)
    return None if done.returncode else done.stdout


def advise(program, data, settings, bound, *gpu):
    told = run(program, "advise", write(data, settings), "--bound", str(bound), "--json", *gpu)
    return {r["workload"]: r for r in json.loads(told)["advice"]} if told else {}


def predict(program, data, settings, device=None, key="sm_mhz"):
    """{workload: {setting: (s, W, deviation of ln s)}} of the settings that were not used."""
    out, groups = {}, {}
    for w, d in data.items():
        groups.setdefault(tuple(settings(d)), []).append(w)
    for at, names in groups.items():
        rows = os.path.join(WORK.name, "rows")
        name = "sm" if key == "sm_mhz" else "caps"
        if run(program, "fit", "workload", write({w: data[w] for w in names}, sorted, key), "--rows", rows,
               "--extrapolate", "--at", f"{name}=" + ",".join(f"{x:g}" for x in at),
               *(["--device", device] if device else [])) is None:
            continue
        for r in read(rows)[0]:
            if r["fitted"] == "0" and r["predicted_time_s"]:
                sd = number(r, "time_sd_pct") / 100
                out.setdefault(r["workload"], {})[number(r, key)] = (
                    number(r, "predicted_time_s"), number(r, "predicted_power_w"), 0 if math.isnan(sd) else sd)
    return out


def devices(program, board):
    """[(device file, the other half)]: the devices are fitted to at most MOST_FITTED workloads of a half."""
    out, names = [], sorted(board.clocks)
    for half in (0, 1):
        mine = names[half::2]
        few = mine[:: math.ceil(len(mine) / MOST_FITTED)] if mine else []
        other = {w: board.clocks[w] for w in names[1 - half::2]}
        path = os.path.join(WORK.name, f"{board.name}-{half}-{len(out)}-{os.path.basename(program)}.json")
        base = ["--base", board.platform] if board.platform else []
        if len(few) > 1 and other and run(program, "fit", "device", write({w: board.clocks[w] for w in few}, sorted),
                                          "-o", path, *base) is not None:
            out.append((path, other))
    return out


def errors(data, predicted, low=None):
    """Mean absolute errors of time, power and energy, in percent."""
    out = [[], [], []]
    for w, at in predicted.items():
        for x, (t, p, _) in at.items():
            if low is None or x >= low(data[w]):
                of = (t / data[w][x][0] - 1, p / data[w][x][1] - 1)
                for e, v in zip(out, (*of, (1 + of[0]) * (1 + of[1]) - 1)):
                    e.append(100 * abs(v))
    return [statistics.fmean(e) if e else math.nan for e in out]


def outcome(d, x, bound):
    """(broken, broken by more than half a point, saved, the best saving) of a setting of a workload."""
    top_s, top_j = d[max(d)][0], d[max(d)][0] * d[max(d)][1]
    t, p = d[x]
    best = min(s * w for s, w in d.values() if s <= (1 + bound) * top_s)
    return t > (1 + bound) * top_s * (1 + 1e-9), t > (1.005 + bound) * top_s, 1 - t * p / top_j, 1 - best / top_j


def shares(of):
    """Of outcomes: broken, broken by more than half a point, saved, in percent."""
    best = sum(o[3] for o in of)
    return (100 * statistics.fmean(o[0] for o in of), 100 * statistics.fmean(o[1] for o in of),
            100 * sum(o[2] for o in of) / best if best > 0 else math.nan)


def no_device_two(program, board, bound):
    data, at = board.clocks, lambda d: taken(d, SHARES[2])
    told = advise(program, data, at, bound, "--board", board.ladder)
    return [outcome(data[w], above(data[w], r["sm_mhz"]), bound) for w, r in told.items()], 2


def in_turn(program, board, bound):
    data = board.clocks
    rows = {w: taken(d, SHARES[2]) for w, d in data.items()}
    for _ in range(MOST_ROWS - 2):
        asked = {w: {x: data[w][x] for x in at} for w, at in rows.items()}
        for w, r in advise(program, asked, sorted, bound, "--board", board.ladder).items():
            x = r["measure_sm_mhz"]
            if x is not None and min(data[w]) <= x:
                rows[w] = sorted({*rows[w], above(data[w], x)})
    out = []
    for w, at in rows.items():
        held = [x for x in at if data[w][x][0] <= (1 + bound) * data[w][max(at)][0]]
        out.append(outcome(data[w], min(held, key=lambda x: data[w][x][0] * data[w][x][1]), bound))
    return out, statistics.fmean(len(at) for at in rows.values())


def with_device(program, board, bound, rows, made):
    out = []
    for device, other in made:
        for w, r in advise(program, other, lambda d: taken(d, SHARES[rows]), bound, "--platform",
                           device).items():
            if r["sm_mhz"] is not None:
                out.append(outcome(other[w], above(other[w], r["sm_mhz"]), bound))
    return out, rows


def caps_of(d):
    """The highest limit, a middle one and the lowest of those that bind."""
    top = max(d)
    bind = sorted(x for x in d if x < 0.99 * d[top][1])
    return sorted({top, bind[len(bind) // 2], bind[0]}) if len(bind) >= 3 else []


def say(name, program, means, worst, goals, text):
    late = [what for what, (x, least, most) in goals.items() if math.isnan(x) or not least <= x <= most]
    if late and not program:
        missed.append(name)
    print(f"{name + ('' if not program else ' (former)'):36s} {text}; worst {worst}"
          f"{'   missed: ' + ', '.join(late) if late and not program else ''}", flush=True)
    del means


def tell_errors(name, former, per_board, goal):
    per_board = [b for b in per_board if not math.isnan(b[1][0])]
    if not per_board:
        print(f"{name:36s} none")
        return
    mean = [statistics.fmean(b[1][i] for b in per_board) for i in range(3)]
    worst = max(per_board, key=lambda b: sum(x / g for x, g in zip(b[1], goal)))
    say(name, former, mean, f"{worst[0]} {worst[1][0]:.2f}, {worst[1][1]:.2f}, {worst[1][2]:.2f}",
        {what: (x, 0, g) for what, x, g in zip(("time", "power", "energy"), mean, goal)},
        "errors of " + ", ".join(f"{what} {x:.2f} ({g:g})" for what, x, g in zip(("time", "power", "energy"), mean, goal))
        + f" %, {len(per_board)} boards")


def tell_choices(name, former, per_board, goal_broken, goal_saved, much=False):
    per_board = [b for b in per_board if b[1]]
    if not per_board:
        print(f"{name:36s} none")
        return
    of = [(b[0], *shares(b[1]), b[2]) for b in per_board]
    broken, saved = statistics.fmean(b[2 if much else 1] for b in of), statistics.fmean(b[3] for b in of)
    worst = min(of, key=lambda b: b[3])
    say(name, former, None, f"{worst[0]} {worst[3]:.0f} %, most broken {max(b[2 if much else 1] for b in of):.1f} %",
        {"broken": (broken, 0, goal_broken), "saved": (saved, goal_saved, math.inf)},
        f"{statistics.fmean(b[4] for b in of):.1f} rows, broken{' by > 0.5 points' if much else ''} {broken:.1f} % "
        f"({goal_broken:g}), saved {saved:.1f} % ({goal_saved:g})")


def goals(program, boards, former):
    clocks = [b for b in boards if b.clocks]
    two = lambda d: taken(d, SHARES[2])
    tell_errors("no device, 70 % + top", former, [
        (b.name, errors(b.clocks, predict(program, b.clocks, two), lambda d: min(two(d)))) for b in clocks], (1, 3, 3))
    for bound in BOUNDS:
        tell_choices(f"no device, 70 % + top, bound {100 * bound:.0f} %", former,
                     [(b.name, *no_device_two(program, b, bound)) for b in clocks], 5, 85)
    for bound in BOUNDS:
        tell_choices(f"no device, in turn, bound {100 * bound:.0f} %", former,
                     [(b.name, *in_turn(program, b, bound)) for b in clocks], 0, 93, much=True)
    made = {b.name: devices(program, b) for b in clocks}
    for rows, broken, saved, what in ((2, 8, 85, "two"), (4, 5, 90, "four")):
        at = lambda d, rows=rows: taken(d, SHARES[rows])
        tell_errors(f"device, {what} rows", former, [
            (b.name, errors(b.clocks, {w: p for device, other in made[b.name]
                                       for w, p in predict(program, other, at, device).items()},
                            lambda d: min(at(d)))) for b in clocks], (1, 3, 3))
        for bound in BOUNDS:
            tell_choices(f"device, {what} rows, bound {100 * bound:.0f} %", former,
                         [(b.name, *with_device(program, b, bound, rows, made[b.name])) for b in clocks], broken, saved)
    held = [(b, {w: d for w, d in b.caps.items() if caps_of(d)}) for b in boards]
    tell_errors("caps, three rows", former, [
        (b.name, errors(d, predict(program, d, caps_of, key="power_cap_w"))) for b, d in held if d], (3, 1.5, 3))


def choose(d, predicted, k, bound):
    """The setting of least energy that lies k deviations below the bound."""
    of = {x: (t, p, 0) for x, (t, p) in d.items()} | predicted
    for x in d:
        if x not in predicted and x != max(d):
            of[x] = (*d[x], 0)
    top = of[max(d)]
    held = [x for x, g in of.items() if x == max(d) or math.log(g[0] / top[0]) + k * g[2] <= math.log1p(bound)]
    return min(held, key=lambda x: of[x][0] * of[x][1])


STEPS = [round(0.05 * i, 2) for i in range(61)]


def least_k(broken, names, count, risk):
    """The least k from which on (n m + 1) / (n + 1) is at most the risk; m: mean over boards of the broken share."""
    best = STEPS[-1]
    for k in reversed(STEPS):
        m = statistics.fmean(broken[name][k][0] for name in names)
        if (count * m / 100 + 1) / (count + 1) > risk:
            break
        best = k
    return best


def tell_risk(name, broken, number_of, families):
    """broken: {board: {k: shares}}, of so many choices."""
    names = list(broken)
    of = [least_k(broken, names, sum(number_of.values()), r) for r in RISKS]
    left = []
    for own in names:
        rest = [n for n in names if families[n] != families[own]]
        if rest:
            left.append((own, *broken[own][least_k(broken, rest, sum(number_of[n] for n in rest), 0.05)]))
    print(f"{name}: k {', '.join(f'{k:g}' for k in of)} at a risk of 1, 2, 5, 10 %; "
          f"{sum(number_of.values())} choices on {len(names)} boards; k of a risk of 5 % by the other families: "
          f"broken {statistics.fmean(x[1] for x in left):.1f} %, at most {max(x[1] for x in left):.1f} %, "
          f"saved {statistics.fmean(x[3] for x in left):.0f} %", flush=True)


def risk(program, boards):
    clocks = [b for b in boards if b.clocks]
    made, families = {b.name: devices(program, b) for b in clocks}, {b.name: b.family() for b in clocks}
    both = {bound: [] for bound in BOUNDS}
    for basis, rows in (("no device", 2), ("device", 2), ("device", 4)):
        at = lambda d, rows=rows: taken(d, SHARES[rows])
        told = {}
        for b in clocks:
            parts = [(None, b.clocks)] if basis == "no device" else made[b.name]
            told[b.name] = {w: p for device, other in parts for w, p in predict(program, other, at, device).items()}
        for bound in BOUNDS:
            broken, number_of = {}, {}
            for b in clocks:
                low = {w: {x: g for x, g in p.items() if x >= min(at(b.clocks[w]))} for w, p in told[b.name].items()}
                d = {w: {x: v for x, v in b.clocks[w].items() if x >= min(at(b.clocks[w]))} for w in low}
                if low:
                    number_of[b.name] = len(low)
                    broken[b.name] = {k: shares([outcome(b.clocks[w], choose(d[w], low[w], k, bound), bound)
                                                 for w in low]) for k in STEPS}
            tell_risk(f"{basis:10s} {rows} rows, bound {100 * bound:2.0f} %", broken, number_of, families)
            if basis == "device":
                both[bound].append((broken, number_of))
    for bound, ((two, count), (four, again)) in both.items():
        names = two.keys() & four.keys()
        tell_risk(f"device, 2 and 4 rows, bound {100 * bound:2.0f} %",
                  {n: {k: [statistics.fmean(v) for v in zip(two[n][k], four[n][k])] for k in STEPS} for n in sorted(names)},
                  {n: count[n] + again[n] for n in names}, families)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--risk", action="store_true")
    p.add_argument("--former")
    p.add_argument("program")
    p.add_argument("sweeps", nargs="+")
    o = p.parse_args()
    boards = [Board(path) for path in o.sweeps]
    if o.risk:
        risk(o.program, boards)
        return 0
    goals(o.program, boards, None)
    if o.former:
        goals(o.former, boards, o.former)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
