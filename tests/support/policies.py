"""What tests/policies.sh computes on tables: workloads scaled and split, sensors made late, results summed and judged.

policies.py half SWEEP SECONDS HALF OUT [DEVICE]   rows at the highest memory clock and power cap, each workload as long
                                                as SECONDS at its top clock; of the workloads those of HALF (tune, score)
policies.py sensor PLATFORM.json HOW OUT        ideal, platform, late-S (all power readings S seconds late)
policies.py take RESULT.csv KEY=VALUE...        rows of a comparison, in the long form, on stdout
policies.py table LONG.csv                      one line for each setting and policy
policies.py page RESULT.csv PAGE BOUND          the table of the page, from a comparison
policies.py figure RESULT.csv OUT               the comparison with a name for each way of tightrope that the figure shows
policies.py ladder LONG.csv PAGE                the table of all sweeps, policy by policy
policies.py gates LONG.csv                      what is claimed; exit status 1 where something is missed
policies.py grid FAMILY PLATFORM.json BOUND SWEEP   the experiment in which a policy's parameters are searched
policies.py experiment LADDER.csv SWEEP PLATFORM BOUND   the committed experiment, of what was found
"""
import csv
import hashlib
import json
import re
import statistics
import sys

SEED = "20"  # of the halves, fixed before any result was seen
LONG = ["sweep", "seconds", "bound", "sensor", "jitter", "half", "policy", "records", "workload", "seed", "saving_pct",
        "regret_pct", "slowdown", "violated", "static_pct", "switches"]


def read_sweep(path):
    with open(path, newline="") as f:
        lines = f.readlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def number(row, key):
    return float(row[key]) if row.get(key) not in (None, "", "nan", "N/A") else None


def split(sweep, names, seed):
    """The workloads to tune on: the first half in the order of a hash of seed, sweep and name."""
    order = sorted(names, key=lambda n: hashlib.sha256(f"{seed}:{sweep}:{n}".encode()).hexdigest())
    return set(order[:len(order) // 2])


def half(path, seconds, which, out, device=None):
    rows = read_sweep(path)
    ran = {}
    if device:  # clocks that the hardware did not run at, by the fit: no measurement of that clock
        with open(device) as f:
            ran = {round(a): r for a, r in json.load(f).get("calibration", {}).get("asked_ran_mhz", [])}
    for key in ("mem_mhz", "power_cap_w"):
        known = [number(r, key) for r in rows if number(r, key) is not None]
        rows = [r for r in rows if not known or number(r, key) == max(known)]
    rows = [r for r in rows if round(float(r["sm_mhz"])) not in ran]
    names = list(dict.fromkeys(r["workload"] for r in rows))
    sweep = path.rsplit("/", 1)[-1].removesuffix(".csv")
    tuned = split(sweep, names, SEED)
    wanted = [n for n in names if (n in tuned) == (which == "tune")]
    factor = {}
    for n in wanted:
        top = max(float(r["sm_mhz"]) for r in rows if r["workload"] == n)
        factor[n] = float(seconds) / sum(float(r["time_s"]) for r in rows
                                         if r["workload"] == n and float(r["sm_mhz"]) == top)
    with open(out, "w", newline="") as f:
        w = csv.DictWriter(f, rows[0].keys())
        w.writeheader()
        for r in rows:
            if r["workload"] in factor:
                r = dict(r)
                for key in ("time_s", "energy_j"):
                    if number(r, key) is not None:
                        r[key] = repr(float(r[key]) * factor[r["workload"]])
                w.writerow(r)


def sensor(path, how, out):
    with open(path) as f:
        p = json.load(f)
    s = p["gpu"]["sensors"]
    for key in ("power", "power_instant", "energy"):
        if key not in s:
            continue
        if how == "ideal":
            s[key] = {"refresh_ms": 1, "quantum": 0.001} if key == "energy" else {"refresh_ms": 1, "window_ms": 1,
                                                                                     "quantum": 0.001}
        elif how.startswith("late-"):
            s[key]["delay_ms"] = 1000 * float(how.removeprefix("late-"))
    with open(out, "w") as f:
        json.dump(p, f)


def take(path, keys):
    with open(path, newline="") as f:
        rows = [r for r in csv.DictReader(f) if r["workload"] != "mean"]
    top = {(r["workload"], r["seed"]): float(r["makespan_s"]) for r in rows if r["policy"] == "maxfreq"}
    w = csv.writer(sys.stdout)
    bound = float(keys["bound"])
    for r in rows:
        if r["policy"].startswith("baseline:") and r["policy"] not in ("baseline:static", "baseline:clairvoyant"):
            continue
        if r["policy"] == "maxfreq":
            continue
        policy = r["policy"].removesuffix(" (records free)")
        if r["policy"] != policy and not ("records" in policy or policy.startswith("mf-gpoeo")):
            continue  # a twin that does without records anyway
        told = any("records_cost=0" in x["policy"] for x in rows)  # where records are free, the policy is to know it
        if told and policy.startswith("tightrope") and (r["policy"] != policy) != ("records_cost=0" in policy):
            continue
        slowdown = float(r["makespan_s"]) / top[(r["workload"], r["seed"])] - 1
        regret = r["regret_clairvoyant_pct"]
        w.writerow([keys[k] for k in LONG[:6]] +
                   [policy, "free" if r["policy"] != policy else "cost", r["workload"], r["seed"], r["energy_saving_pct"],
                    "" if regret == "n/a" else regret, repr(slowdown), int(slowdown > bound + 1e-9),
                    r.get("regret_static_pct", "n/a"), r.get("switches", "0")])


def read_long(path):
    with open(path, newline="") as f:
        rows = list(csv.DictReader(f, LONG))
    for r in rows:
        for key in ("seconds", "bound", "jitter", "saving_pct", "slowdown"):
            r[key] = float(r[key])
        r["regret_pct"] = float(r["regret_pct"]) if r["regret_pct"] else None
        r["violated"] = int(r["violated"])
    return rows


def group(rows, keys):
    out = {}
    for r in rows:
        out.setdefault(tuple(r[k] for k in keys), []).append(r)
    return out


def line(rows):
    regrets = [r["regret_pct"] for r in rows if r["regret_pct"] is not None]
    mean = f"{statistics.fmean(regrets):7.3f}" if regrets else "    n/a"
    worst = f"{max(regrets):7.3f}" if regrets else "    n/a"
    return (f"{statistics.fmean(r['saving_pct'] for r in rows):7.2f} {mean} {worst} "
            f"{100 * max(r['slowdown'] for r in rows):8.3f} {sum(r['violated'] for r in rows):4d}/{len(rows)}")


def short(policy):
    return policy if len(policy) <= 60 else policy[:57] + "..."


def table(path):
    keys = ["sweep", "seconds", "bound", "sensor", "jitter", "policy", "records"]
    print(f"{'sweep':<18} {'s':>5} {'bound':>5} {'sensor':<9} {'jit':>4} {'policy':<60} {'records':<7} "
          f"{'saving':>7} {'regret':>7} {'worst':>7} {'slowest':>8} {'violated':>8}")
    for key, rows in group(read_long(path), keys).items():
        print(f"{key[0]:<18} {key[1]:5g} {100 * key[2]:4g}% {key[3]:<9} {100 * key[4]:3g}% {short(key[5]):<60} {key[6]:<7} "
              + line(rows))


def write_rows(out, rule, lines):
    """Replaces the rows of a page's first table below that rule."""
    with open(out) as f:
        text = f.read().split("\n")
    head = next((i for i, t in enumerate(text) if t.strip() == rule), None)
    if head is None:
        sys.exit(f"policies: {out}: no table below {rule}")
    indent = text[head][:len(text[head]) - len(text[head].lstrip())]
    end = next(i for i in range(head + 1, len(text)) if not text[i].strip().startswith("|"))
    with open(out, "w") as f:
        f.write("\n".join(text[:head + 1] + [indent + line for line in lines] + text[end:]))


def mean_of(rows, key):
    known = [float(r[key]) for r in rows if r[key] not in (None, "", "n/a")]
    return f"{statistics.fmean(known):.2f}" if known else "n/a"


def ladder(path, out):
    """Means over the workloads of all sweeps, those that save most first, bound by bound."""
    lines = []
    rows = [{**r, "policy": r["policy"].split(":")[0] if not r["policy"].startswith("baseline:") else r["policy"].removeprefix("baseline:")}
            for r in read_long(path) if r["records"] == "cost" and "records_cost" not in r["policy"]]
    for (bound,), those in sorted(group(rows, ["bound"]).items()):
        of = group(those, ["policy"])
        for (policy,), its in sorted(of.items(), key=lambda x: (-statistics.fmean(r["saving_pct"] for r in x[1]), x[0])):
            lines.append(f"| {100 * bound:g} % | {policy} | {mean_of(its, 'saving_pct')} | {100 * statistics.fmean(r['slowdown'] for r in its):.2f} | "
                         f"{sum(r['violated'] for r in its)}/{len(its)} | {mean_of(its, 'static_pct')} | {mean_of(its, 'regret_pct')} | {mean_of(its, 'switches')} |")
    write_rows(out, "|--|--|--|--|--|--|--|--|", lines)


def record_of(path):
    return re.sub(r"\.csv$", "", path) + ".provenance.json"


def figure(path, out):
    """One name for each way of tightrope that is shown, these first; looks repeat after 24 names."""
    shown = {"tightrope:bound=0.05": "tightrope", "tightrope:bound=0.05,trust=counters": "tightrope trust=counters",
             "tightrope:bound=0.05,signal=records,records_cost=0 (records free)": "tightrope, records free"}
    with open(path, newline="") as f:
        rows = [{**r, "policy": shown.get(r["policy"], r["policy"])} for r in csv.DictReader(f)]
    with open(out, "w", newline="") as f:
        w = csv.DictWriter(f, rows[0].keys())
        w.writeheader()
        w.writerows(r for r in rows if r["policy"] in shown.values())
        w.writerows(r for r in rows if not r["policy"].startswith(("tightrope", "maxfreq")))  # the reference is at 0
    with open(record_of(path)) as f:
        bound = json.load(f)["options"]["bound"]
    with open(record_of(out), "w") as f:
        json.dump({"options": {"bound": bound}}, f)


def page(path, out, bound):
    """Replaces the rows of the first table of the page."""
    with open(path, newline="") as f:
        rows = [r for r in csv.DictReader(f) if r["workload"] != "mean"]
    top = {r["workload"]: float(r["makespan_s"]) for r in rows if r["policy"] == "maxfreq"}
    lines = []
    for (policy,), those in group(rows, ["policy"]).items():
        free = policy.endswith(" (records free)")
        if policy == "maxfreq" or "signal=" in policy and free != ("records_cost=0" in policy):
            continue  # the reference; a twin that does without records anyway, or is told otherwise
        regrets = [float(r["regret_clairvoyant_pct"]) for r in those if r["regret_clairvoyant_pct"] != "n/a"]
        slow = [float(r["makespan_s"]) / top[r["workload"]] - 1 for r in those]
        lines.append(f"| `{policy}` | {statistics.fmean(float(r['energy_saving_pct']) for r in those):.2f} | "
                     + (f"{statistics.fmean(regrets):.2f}" if regrets else "n/a")
                     + f" | {100 * max(slow):.2f} | {sum(s > float(bound) + 1e-9 for s in slow)}/{len(those)} |")
    write_rows(out, "|---|---|---|---|---|", lines)


class Gates:
    def __init__(self):
        self.missed = 0

    def judge(self, what, rows, mean=None, worst=None):
        if not rows:
            print(f"  not run   {what}")
            return
        regrets = [r["regret_pct"] for r in rows if r["regret_pct"] is not None]
        bad = sum(r["violated"] for r in rows)
        m = statistics.fmean(regrets) if regrets else float("inf")
        w = max(regrets) if regrets else float("inf")
        fails = [t for t in (bad and f"{bad} violated", mean is not None and not m <= mean and "mean",
                             worst is not None and not w <= worst and "worst") if t]
        self.missed += bool(fails)
        goals = ", ".join([f"mean {m:.3f} %" + (f" (goal {mean:g})" if mean is not None else ""),
                           f"worst {w:.3f} %" + (f" (goal {worst:g})" if worst is not None else ""),
                           f"violated {bad}/{len(rows)} (goal 0)", f"slowest {100 * max(r['slowdown'] - r['bound'] for r in rows):+.3f} points of the bound"])
        print(f"  {'MISSED   ' if fails else 'held     '} {what}: {goals}" + (f"; missed: {', '.join(fails)}" if fails else ""))

    def saving(self, what, ours, theirs):
        """Ours above theirs, where theirs holds the bound."""
        pairs = [(ours[k], t) for k, t in theirs.items() if k in ours and not t["violated"]]
        if not pairs:
            print(f"  not run   {what}")
            return
        a, b = (statistics.fmean(p[i]["saving_pct"] for p in pairs) for i in (0, 1))
        self.missed += not a > b
        print(f"  {'held     ' if a > b else 'MISSED   '} {what}: {a:.2f} % against {b:.2f} % on {len(pairs)} workloads")


def way_of(r):
    """What tightrope goes by in that run; None: another policy's run."""
    policy = r["policy"]
    if not policy.startswith("tightrope"):
        return None
    said = dict(p.split("=", 1) for p in policy.partition(":")[2].split(",") if "=" in p)
    way = "counters" if said.get("trust") == "counters" else said.get("signal", "default")
    return way + (f", alike={said['alike']}" if "alike" in said else "") + (" free" if r["records"] == "free" else "")


def gates(path):
    rows = read_long(path)
    g = Gates()
    ways = group(({**r, "way": way_of(r)} for r in rows if way_of(r)), ["way", "seconds", "bound", "sensor", "jitter"])

    def pick(way, seconds, bound, sensor="platform", jitter=0.0):
        return ways.get((way, float(seconds), bound, sensor, jitter), [])

    counted = ["counters", "kernels free"]  # nothing counts kernels but their records
    judged = ["default free", "records free", *counted]
    reported = ["default", "records"]  # at their cost
    bounds = (0.05, 0.1)
    for seconds, mean, worst in ((100, 0.25, 1), (30, 0.6, None), (10, 1.5, None)):
        for bound in bounds:
            what = f"{seconds} s, bound {100 * bound:g} %"
            for way in judged:
                g.judge(f"{what}, {way}", pick(way, seconds, bound), mean, worst)
            for way in reported:
                g.judge(f"{what}, {way}, at cost", pick(way, seconds, bound))
    for bound in bounds:
        for way in counted:
            g.judge(f"jitter 5 %, 100 s, bound {100 * bound:g} %, {way}", pick(way, 100, bound, jitter=0.05), 1)
    for late in ("late-0.2", "late-0.5", "late-1"):
        for bound in bounds:
            for way in judged:
                g.judge(f"power {late.removeprefix('late-')} s late, 100 s, bound {100 * bound:g} %, {way}",
                        pick(way, 100, bound, late), 2)
    for bound in bounds:
        theirs = {(r["sweep"], r["workload"], r["seed"]): r for r in rows
                  if r["policy"].startswith("assure") and r["bound"] == bound and r["seconds"] == 100 and
                  r["sensor"] == "platform" and r["jitter"] == 0}
        for way in ("util", "util, alike=all"):
            ours = pick(way, 100, bound)
            what = f"utilisation only, bound {100 * bound:g} %, {way}"
            g.judge(what, ours)
            g.saving(f"{what}: saving above Assure's where it holds the bound",
                     {(r["sweep"], r["workload"], r["seed"]): r for r in ours}, theirs)
    for (way,), those in group(({**r, "way": way_of(r)} for r in rows if way_of(r)), ["way"]).items():
        g.judge(f"all runs, {way}", those)
    print(f"{g.missed} goals missed" if g.missed else "every goal that was run is held")
    return 1 if g.missed else 0


# ---- what is searched: every policy that applies, over the parameters that its authors leave to the user ----

def clocks(path):
    with open(path) as f:
        sm = json.load(f)["gpu"]["sm_mhz"]
    if isinstance(sm, list):
        return [float(c) for c in sm]
    out, at, i = [], sm["from"], 0
    while at <= sm["to"]:
        out.append(float(at))
        at += sm["steps"][i % len(sm["steps"])]
        i += 1
    return out


def each(values):
    return {"each": values}


def grid(family, platform, bound, sweep):
    b = float(bound)
    measured = sorted({float(r["sm_mhz"]) for r in read_sweep(sweep)})
    ladder = [c for c in clocks(platform) if measured[0] <= c <= measured[-1]]
    top = ladder[-1]
    few = [ladder[round(i * (len(ladder) - 1) / 15)] for i in range(16)] if len(ladder) > 16 else ladder
    near = [c for c in few if c >= top / (1 + 3 * b)] or [top]
    arms = [near[i:i + n] for n in (2, 3, 5) for i in range(len(near) - n + 1)] or [near]
    thetas = [round(1 - b * k, 4) for k in (0.1, 0.25, 0.5, 0.75, 1)]
    losses = [round(b * k, 5) for k in (0.25, 0.5, 0.75, 1)]
    with open(platform) as f:
        tdp = json.load(f)["gpu"]["limits"]["default_w"]
    caps = [round(tdp * (0.3 + 0.05 * i)) for i in range(15)]
    node = [round(tdp * (0.3 + 0.1 * i) + 100) for i in range(11)]  # with the host's share
    probes = [few[0], few[len(few) // 2], top], few[-3:]
    sets = {
        "fixed": [{"sm_mhz": each(ladder)}],
        "efficientfix": [{"efficient_mhz": each(ladder)}],
        "utilizscale": [{"lowest_mhz": each(few)}],
        "assure": [{"theta": each(thetas), "lowest_mhz": each([few[0], near[0]])}],
        "sweetspot": [{"theta": each(thetas), "lowest_mhz": each([few[0], near[0]]), "alpha": each([0.7, 0.9, 1])}],
        "1levelth": [{"gpu_med_mhz": each(near), "gpu_low_mhz": each([few[0], near[0]])}],
        "multilevelth": [{"gpu_med_mhz": each(near), "gpu_low_mhz": each([few[0], near[0]])}],
        "bapm": [{"power_w": each(caps)}],
        "cap-dynamic-max": [{"cap_w": each(node), "interval_s": each([1, 5])}],
        "cap-dynamic-min": [{"cap_w": each(node), "interval_s": each([1, 5])}],
        "energyucb": [{"alpha": each([0.3, 1, 3]), "interval_ms": each([10, 100]), "arms_mhz": a} for a in arms],
        "round-robin": [{"arms_mhz": a} for a in arms],
        "random": [{"arms_mhz": a} for a in arms],
        "epsilon-greedy": [{"epsilon": each([0.03, 0.1]), "arms_mhz": a} for a in arms],
        "mf-gpoeo": [{"con_perf": each(losses), "memory": False}],
        "depo": [{"con_perf": each(losses), "step_w": each([5, 10]), "window_s": each([2, 4])}],
        "odpp": [{"con_perf": each(losses), "probe_mhz": p, "train_mhz": p} for p in probes],
        "skeleton": [{"high_pct": each([90, 99]), "low_pct": each([30, 60])}],
    }
    json.dump({"foldline_experiment": 1, "about": "parameters of one policy", "platform": platform, "sweep": sweep,
               "bound": b, "policies": [{"policy": family, "set": s} for s in sets[family]]}, sys.stdout)


def experiment(ladder, sweep, platform, bound):
    """The committed experiment: the shipped sweep's scored workloads, each policy at its best parameters."""
    rows = [r for r in read_sweep(ladder) if r["sweep"] == sweep.rsplit("/", 1)[-1].removesuffix(".csv") and
            float(r["bound"]) == float(bound)]
    names = list(dict.fromkeys(r["workload"] for r in read_sweep(sweep)))
    tuned = split(rows[0]["sweep"], names, SEED)
    policies = [{"policy": "tightrope", "set": {"bound": float(bound), **more}} for more in ({}, {"trust": "counters"})]
    policies += [{"policy": "tightrope", "set": {"bound": float(bound), "signal": s}} for s in ("records", "kernels", "bytes", "util")]
    policies += [{"policy": "tightrope", "set": {"bound": float(bound), "signal": s, "records_cost": 0}}
                 for s in ("records", "kernels")]
    policies += [r["spec"] for r in rows] + ["maxfreq"]
    about = ("tightrope beside every built-in policy that applies, at the parameters that foldline search found best for the "
             "same bound on the other half of these workloads (harness/experiments/ladder.csv, by tests/policies.sh "
             "PROGRAM --tune). tests/policies.sh runs the whole: bounds, lengths, signals, sensors, jitter, measured sweeps")
    head = {"foldline_experiment": 1, "about": about, "platform": platform, "sweep": "../../" + sweep,
            "workloads": [n for n in names if n not in tuned], "bound": float(bound), "records": "both"}
    lines = [f'  {json.dumps(k)}: {json.dumps(v)}' for k, v in head.items()]
    lines.append('  "policies": [\n' + ",\n".join("    " + json.dumps(p) for p in policies) + "\n  ]")
    print("{\n" + ",\n".join(lines) + "\n}")


FAMILIES = ["fixed", "efficientfix", "utilizscale", "assure", "sweetspot", "1levelth", "multilevelth", "bapm",
            "cap-dynamic-max", "cap-dynamic-min", "energyucb", "round-robin", "random", "epsilon-greedy", "mf-gpoeo",
            "depo", "odpp", "skeleton"]


def main(argv):
    what, rest = argv[0], argv[1:]
    if what == "half":
        half(*rest)
    elif what == "sensor":
        sensor(*rest)
    elif what == "take":
        take(rest[0], dict(a.split("=", 1) for a in rest[1:]))
    elif what == "table":
        table(rest[0])
    elif what == "page":
        page(*rest)
    elif what == "figure":
        figure(*rest)
    elif what == "ladder":
        ladder(*rest)
    elif what == "gates":
        return gates(rest[0])
    elif what == "grid":
        grid(*rest)
    elif what == "experiment":
        experiment(*rest)
    elif what == "seed":
        print(SEED)
    elif what == "families":
        print("\n".join(FAMILIES))
    return 0


sys.exit(main(sys.argv[1:]))
