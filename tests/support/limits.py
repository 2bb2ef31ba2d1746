"""Recordings of a V100 under power limits (GridPilot) against the simulation of it (tests/limits.sh).

    limits.py PROGRAM FOLDER PLUGIN

FOLDER holds any of e1-LOAD-capW-smMHZ.telemetry.csv, e2.telemetry.csv, e4-LOAD.csv. A load is two constants of power
and one of time, from the cells of FOLDER that no limit held. Where no such cell of 945 or 1380 MHz is there, DEFAULT
replaces it. Definitions of t63, t90 and overshoot are those of the head of steps.csv: times count from the last row
before the set, `before` is the mean of 0.15 s up to it, `after` that of the last 0.25 s before the next set."""
import csv
import glob
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile

PROGRAM, FOLDER, PLUGIN = sys.argv[1:4]
PLATFORM = "v100-300w"
LOADS = ("matmul", "inference", "bursty")
# Of the cells without a limit that binds, means of the busy part: W at 945 and 1380 MHz, iterations/s at both, standard
# deviation of power at 1380 MHz in W and its correlation with the reading before.
DEFAULT = {"matmul": (119.9, 207.4, 65.2, 93.7, 1.6, 0.4), "inference": (144.2, 224.7, 404.7, 509.8, 0.8, 0.0),
           "bursty": (122.5, 207.4, 65.2, 93.7, 1.6, 0.4)}
ITERATIONS = {"matmul": 2, "inference": 10, "bursty": 2}  # in a kernel of the simulation, about 20 ms
BURST = (434, 0.48)  # bursty: iterations in a burst, s between bursts
UP = {"t63": (92, 360), "t90": (284, 401)}  # range of the steps up in E2 and in E4 with matmul, ms
STEP_W = 30  # smallest change of the limit that counts as a step
REFRESH_S = 0.0202
failures = 0
scratch = tempfile.TemporaryDirectory()


def told(what, measured, simulated, error, goal, ok):
    global failures
    failures += not ok
    print(f"{'ok' if ok else 'MISSED':7}{what:44}{measured:>16}{simulated:>16}{error:>10}  {goal}")


def table(path):
    with open(path, encoding="utf-8") as f:
        head, lines = [], []
        for line in f:
            (head if line.startswith("#") else lines).append(line)
    return "".join(head), list(csv.DictReader(lines))


def series(path):
    """Rows (s, W, MHz, limit W) of a telemetry log, in time from its first row."""
    head, rows = table(path)
    if "t_ns" in rows[0]:
        out = [(int(r["t_ns"]) * 1e-9, float(r["power_w"]), float(r["sm_mhz"]), float(r.get("power_limit_w") or "nan"))
               for r in rows if r["device"] == "0" and r["power_w"] and r["sm_mhz"]]
    else:
        out = [(float(r["t_s"]), float(r["power_w"]), float(r["sm_mhz"]), float(r["cap_w"])) for r in rows]
    return head, out


# ---- cells: one limit, one lock ----

def busy(rows, idle_w=None):
    """The busy part, without its first 3 s, in which the load had other operands and the limit was still settling."""
    idle_w = idle_w or rows[0][1]
    on = [r for r in rows if r[1] > 1.25 * idle_w]
    return [r for r in on if on[0][0] + 3 <= r[0] <= on[-1][0] - 0.1] if on else []


def refreshed(rows):
    out = rows[:1]
    for r in rows[1:]:
        if r[1] != out[-1][1] or r[0] - out[-1][0] > 1.5 * REFRESH_S:
            out.append(r)
    return out


def ripple(rows):
    """Standard deviation of power around the mean of 2 s, and the correlation of neighbouring readings."""
    v = [r[1] for r in refreshed(rows)]
    flat = [x - statistics.fmean(v[max(0, i - 50):i + 51]) for i, x in enumerate(v)]
    var = statistics.fmean(x * x for x in flat)
    return math.sqrt(var), statistics.fmean(a * b for a, b in zip(flat, flat[1:])) / var if var else 0


def bursts(rows):
    """Runs of busy rows without their first and last 0.5 s; the whole of a load that never pauses."""
    out = [[]]
    for r in rows:
        if out[-1] and r[0] - out[-1][-1][0] > 0.2:
            out.append([])
        out[-1].append(r)
    return [[r for r in b if b[0][0] + 0.5 <= r[0] <= b[-1][0] - 0.2] for b in out]


def spread(rows, column):
    """Standard deviation within bursts."""
    parts = [[r[column] for r in refreshed(b)] for b in bursts(rows)]
    parts = [p for p in parts if len(p) > 20]
    n = sum(len(p) for p in parts)
    return math.sqrt(sum(statistics.pvariance(p) * len(p) for p in parts) / n)


def cells():
    out = {}
    for path in sorted(glob.glob(FOLDER + "/e1-*.telemetry.csv")):
        load, cap, lock = re.search(r"e1-(\w+)-cap(\d+)-sm(\d+)", path).groups()
        head, rows = series(path)
        count, took = re.search(r"iterations (\d+) in ([\d.]+) s", head).groups()
        part = busy(rows)
        out[load, int(cap), int(lock)] = {
            "rows": part, "rate": int(count) / float(took), "power": statistics.fmean(r[1] for r in part),
            "mhz": statistics.fmean(r[2] for r in part), "held": sum(r[2] < int(lock) for r in part) > 0.05 * len(part),
            "iterations": int(count)}
    return out


# ---- loads of the simulation ----

def board():
    with open(f"models/platforms/{PLATFORM}.json", encoding="utf-8") as f:
        return json.load(f)["gpu"]


def volts(mhz):
    points = board()["power"]["voltage"]
    for (a, x), (b, y) in zip(points, points[1:]):
        if mhz <= b:
            return x + (y - x) * (mhz - a) / (b - a)
    return points[-1][1]


def power_terms(mhz):
    """The board's power without work, and W per alpha and per beta."""
    p, v = board()["power"], volts(mhz)
    return (p["b0_w"][0] + p["c_w"] * v + p["a0_w"] * v * v * mhz / 1000, p["a_w"] * v * v * mhz / 1000, p["b_w"])


def load_of(name, measured, but=None):
    """alpha, beta, share of the time that follows the clock, rate at 1380 MHz, ripple in alpha, its correlation. All from
    the cells that no limit held, without the cell `but`."""
    def mean(lock, key):
        found = [c[key] for (load, cap, at), c in measured.items()
                 if load == name and at == lock and not c["held"] and (load, cap, at) != but]
        return statistics.fmean(found) if found else None
    low_w, top_w, low_rate, top_rate, sd, near = DEFAULT[name]
    low_w, top_w = mean(945, "power") or low_w, mean(1380, "power") or top_w
    if name != "bursty":
        low_rate, top_rate = mean(945, "rate") or low_rate, mean(1380, "rate") or top_rate
        for (load, cap, at), c in measured.items():
            if load == name and at == 1380 and not c["held"]:
                sd, near = ripple(c["rows"])
    (base, a, b), (base_top, a_top, b_top) = power_terms(945), power_terms(1380)
    alpha = ((top_w - base_top) * b - (low_w - base) * b_top) / (a_top * b - a * b_top)
    beta = (low_w - base - alpha * a) / b
    follows = (top_rate / low_rate - 1) / (1380 / 945 - 1)
    return {"alpha": alpha, "beta": beta, "follows": follows, "rate": top_rate, "sd": sd / a_top, "near": near}


LEVELS = [x / 4 for x in range(-10, 11)]


def make_load(name, c, seconds, path):
    """A kernel trace at 1380 MHz, whose power varies from kernel to kernel as the recorded one does."""
    with open(path + ".kinds.csv", "w", encoding="utf-8") as f:
        f.write("# foldline-kinds 1\n# source: tests/limits.sh\n"
                "name,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz\n")
        for i, x in enumerate(LEVELS):
            f.write(f"k{i},{c['follows']:.6f},0,{max(1 - c['follows'], 0):.6f},inf,{c['alpha'] + x * c['sd']:.6f},"
                    f"{c['beta']:.6f},1,1380,877\n")
    draw, z, t, i = random.Random(7), 0.0, 0.0, 0
    each = ITERATIONS[name] / c["rate"]
    near = max(0.0, min(0.9, c["near"]))
    with open(path, "w", encoding="utf-8") as f:
        f.write("# foldline-kernels 1\n# device: Tesla V100\n# source: tests/limits.sh\n"
                f"# sm_mhz: 1380\n# mem_mhz: 877\n# kinds: {os.path.basename(path)}.kinds.csv\n"
                "device,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,block_y,block_z\n")
        while t < seconds:
            z = near * z + math.sqrt(1 - near * near) * draw.gauss(0, 1)
            level = max(0, min(len(LEVELS) - 1, round(z * 4) + 10))
            f.write(f"0,0,0,{round(t * 1e9)},{round((t + each) * 1e9)},k{level},512,1,1,256,1,1\n")
            t, i = t + each, i + 1
            if name == "bursty" and i % (BURST[0] // ITERATIONS[name]) == 0:
                t += BURST[1]


def simulate(trace, limits, out, every_ms, *more):
    """Run under the limits of a list of (s, W), set by a policy of its own."""
    with open(out + ".limits", "w", encoding="utf-8") as f:
        f.writelines(f"{t:.6f} {w:g}\n" for t, w in limits)
    return run(trace, PLUGIN, "--telemetry", out, "--every-ms", str(every_ms), *more, FOLDLINE_LIMITS=out + ".limits")


def run(trace, policy, *more, **variables):
    command = [PROGRAM, "run", trace, "--platform", PLATFORM, "--no-cpu", "--policy", policy, "--json", *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **variables})
    if done.returncode:
        raise SystemExit(f"limits: {done.stderr}")
    return json.loads(done.stdout)


def held_rows(measured):
    for (load, cap, lock), c in measured.items():
        if not c["held"]:
            continue
        made = load_of(load, measured, (load, cap, lock))
        path = os.path.join(scratch.name, f"{load}.csv")
        make_load(load, made, 30, path)
        result = simulate(path, [(0, cap)], path + ".log", 10, "--set", f"lock_mhz={lock}")
        rows = busy(series(path + ".log")[1], 65)
        what = f"{load} {cap} W {lock} MHz: "
        for text, column, low, high in (("deviation of power, W", 1, 0.5, 3), ("deviation of clock, MHz", 2, 1, 10)):
            is_now, was = spread(rows, column), spread(c["rows"], column)
            told(what + text, f"{was:.2f}", f"{is_now:.2f}", f"{is_now - was:+.2f}", f"{low:g} to {high:g}",
                 low <= is_now <= high)
        for text, key, column, goal in (("mean power, W", "power", 1, 1), ("mean clock, MHz", "mhz", 2, 2.5)):
            value = statistics.fmean(r[column] for r in rows)
            err = 100 * (value / c[key] - 1)
            told(what + text, f"{c[key]:.1f}", f"{value:.1f}", f"{err:+.2f} %", f"within {goal:g} %", abs(err) <= goal)
        if load == "bursty":
            continue  # its printed rate counts the pauses and the start
        kernels = int(open(path, encoding="utf-8").read().count(",k")) * ITERATIONS[load]
        rate = kernels / result["makespan_s"]
        err = 100 * (c["rate"] / rate - 1)
        told(what + "time of an iteration, ms", f"{1000 / c['rate']:.3f}", f"{1000 / rate:.3f}", f"{err:+.2f} %",
             "within 2.5 %", abs(err) <= 2.5)


# ---- steps ----

def response(rows, t0, end):
    """What power does after a limit was set at the row of t0, until `end`."""
    before = statistics.fmean(r[1] for r in rows if t0 - 0.15 < r[0] <= t0)
    after = statistics.fmean(r[1] for r in rows if end - 0.25 < r[0] <= end)
    change = after - before
    later = [r for r in rows if t0 < r[0] <= end]

    def reached(share):
        return next((1000 * (r[0] - t0) for r in later if (r[1] - before) / change >= share), float("nan"))
    beyond = max((r[1] - after) / change for r in later)
    return {"before": before, "after": after, "t63": reached(0.632), "t90": reached(0.9), "over": 100 * beyond}


def steps(rows, sets, down):
    """Responses to the sets that change the limit by STEP_W at least, while the limit holds the power."""
    out = []
    for (t, _), (a, b), span in sets:
        if abs(b - a) < STEP_W or (b < a) != down:
            continue
        r = response(rows, t, t + span)
        if r["before"] > 0.9 * min(a, 275) and abs(r["after"] - r["before"]) >= 0.6 * STEP_W and \
                (r["after"] < r["before"]) == down:
            out.append(r)
    return out


def sets_of(rows, longest):
    """((s, MHz) of the row after which a limit was set, (from, to) in W, s until the next set, at most `longest`)."""
    found = [(a[0], a[3], b[3]) for a, b in zip(rows, rows[1:]) if a[3] != b[3]]
    out = []
    for i, (t, a, b) in enumerate(found):
        until = found[i + 1][0] if i + 1 < len(found) else rows[-1][0]
        out.append(((t, 0), (a, b), min(longest(a, b), until - t)))
    return out


def step_rows(measured):
    ups = {key: list(pair) for key, pair in UP.items()}
    pairs = []
    for path in sorted(glob.glob(FOLDER + "/e2.telemetry.csv") + glob.glob(FOLDER + "/e4-*.csv")):
        if path.endswith(".telemetry.csv") and "/e4-" in path:
            continue
        is_e2 = "/e2." in path
        load = "bursty" if is_e2 else re.search(r"e4-(\w+)\.csv", path).group(1)
        if not is_e2 and load == "bursty":
            continue  # its pauses lie in the spans
        rows = series(path)[1]
        recorded = sets_of(rows, (lambda a, b: 0.7 if b < a else 1.15) if is_e2 else (lambda a, b: 3))
        trace = os.path.join(scratch.name, f"steps-{load}.csv")
        load = "matmul" if is_e2 else load  # the steps of E2 lie within bursts of it
        make_load(load, load_of(load, measured), rows[-1][0] + 5, trace)
        simulate(trace, [(0, rows[0][3])] + [(t + (0 if is_e2 else 0.010), b) for (t, _), (a, b), s in recorded],
                 trace + ".log", 5 if is_e2 else 11)
        sim = series(trace + ".log")[1]
        sim_sets = [((max((r[0] for r in sim if r[0] <= t), default=0), 0), ab, s) for (t, _), ab, s in recorded]
        pairs.append(("E2" if is_e2 else f"E4 {load}", steps(rows, recorded, True), steps(sim, sim_sets, True), True))
        up = steps(rows, recorded, False)
        for key, seen in ups.items():
            seen += [r[key] for r in up]
        pairs.append((pairs[-1][0], up, steps(sim, sim_sets, False), False))
    for name, was, now, down in pairs:
        if not was or not now:
            continue
        what = f"{name}: {len(was)} step{'s' * (len(was) > 1)} {'down' if down else 'up'}, "
        for key in ("t63", "t90"):
            a, b = statistics.median(r[key] for r in was), statistics.median(r[key] for r in now)
            if down:
                err = 100 * (b / a - 1)
                told(what + key + ", ms", f"{a:.0f}", f"{b:.0f}", f"{err:+.0f} %", "within 25 %", abs(err) <= 25)
            else:
                low, high = 0.75 * min(ups[key]), 1.25 * max(ups[key])
                told(what + key + ", ms", f"{a:.0f}", f"{b:.0f}", f"{b - a:+.0f}", f"{low:.0f} to {high:.0f}",
                     low <= b <= high)
        if down:
            a, b = statistics.median(r["over"] for r in was), statistics.median(r["over"] for r in now)
            told(what + "overshoot, % of it", f"{a:.1f}", f"{b:.1f}", f"{b - a:+.1f}", "within 15 points",
                 abs(b - a) <= 15)


# ---- the executed controller, in closed loop ----

def decisions(path, until):
    """(s, demand, power as read) of the steps from 5 s on."""
    out, demand = [], math.nan
    for r in table(path)[1]:
        t = int(r["t_ns"]) * 1e-9
        demand = float(r["target_w"]) if r["device"] == "host" and r["target_w"] else demand
        if r["device"] == "0" and r["power_w"] and 5 <= t <= until:
            out.append((t, demand, float(r["power_w"])))
    return out


def controller_rows(measured):
    for path in sorted(glob.glob(FOLDER + "/e4-*.csv")):
        if path.endswith(".telemetry.csv"):
            continue
        load = re.search(r"e4-(\w+)\.csv", path).group(1)
        rows = [(float(r["t_s"]), float(r["demand_w"]), float(r["power_w"])) for r in table(path)[1]]
        was = statistics.fmean(abs(p - d) for t, d, p in rows if t >= 5)
        bias = statistics.fmean(p - d for t, d, p in rows if t >= 5)
        demand = [(t, d) for i, (t, d, p) in enumerate(rows) if not i or d != rows[i - 1][1]]
        trace = os.path.join(scratch.name, f"pid-{load}.csv")
        make_load(load, load_of(load, measured), rows[-1][0], trace)
        period = 1000 * statistics.median(b[0] - a[0] for a, b in zip(rows, rows[1:]))
        with open(trace + ".target", "w", encoding="utf-8") as f:
            f.write("# foldline-target 1\nt_ns,watts\n")
            f.writelines(f"{round(t * 1e9)},{d:g}\n" for t, d in demand)
        run(trace, "gridpilot", "--target", trace + ".target", "--set", f"period_ms={period:.2f}", "--log", trace + ".log")
        seen = decisions(trace + ".log", rows[-1][0])
        now = statistics.fmean(abs(p - d) for t, d, p in seen)
        goal = 3 if load == "bursty" else 0.7
        told(f"E4 {load}: error after 5 s, W", f"{was:.2f}", f"{now:.2f}", f"{now - was:+.2f}", f"within {goal:g} W",
             abs(now - was) <= goal)
        print(f"{'':7}{'  its mean, W':44}{bias:>16.2f}{statistics.fmean(p - d for t, d, p in seen):>16.2f}")


print(f"{'':7}{'quantity':44}{'measured':>16}{'simulated':>16}{'error':>10}  goal")
known = cells()
held_rows(known)
step_rows(known)
controller_rows(known)
sys.exit(failures > 0)
