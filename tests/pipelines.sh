#!/usr/bin/env bash
# How well do fitted pipelines predict executed clock plans that they have not seen? By five protocols, over every cell of
# measurements in FOLDLINE_DATA (CELL.plans.csv and so on, there or in its folder pipelines): errors of time and energy as medians over the cells, each cell
# beside how well its neighbouring plans do without a model. Ends with 1 where a goal is missed, with 77 where there is no data.
#   FOLDLINE_DATA=DIR tests/pipelines.sh PROGRAM
set -u
f=$(realpath "${1:?usage: FOLDLINE_DATA=DIR tests/pipelines.sh PROGRAM}")
data=${FOLDLINE_DATA:-/nowhere}
[ ! -d "$data/pipelines" ] || data=$data/pipelines
cells=$(cd "$data" 2>/dev/null && ls ./*.plans.csv 2>/dev/null | sed 's|^\./||;s/\.plans\.csv$//')
[ -n "$cells" ] || { echo "FOLDLINE_DATA holds no pipelines: skipped"; exit 77; }

F=$f DATA=$data CELLS=$cells python3 - <<'END'
import csv, json, os, statistics, subprocess, sys

program, data, cells = os.environ["F"], os.environ["DATA"], os.environ["CELLS"].split()

# protocol, what is learned from, whether other pipelines on the chip tell what to expect; goals in percent: the median
# over cells of time and energy, and the worst cell of either
PROTOCOLS = [
    ("half -> others", "half", False, 0.3, 1.2, 0.4, 0.6),
    ("three -> others", "three", False, 0.5, 1.0, 0.6, 1.0),
    ("one, the top clock -> others", "first", True, 2.0, 5.0, 4.0, 9.0),
    ("slow half -> fast half", "slow", False, 0.8, None, 1.0, None),
    ("clock plans -> power limits", "all", False, 1.5, None, 4.0, None),
]


def chip(cell):
    return cell.split("-")[0]


def same_training(one, other):
    """Return whether both are one cell, or one is the other's twin under another schedule (CELL.envpipe, CELL-envpipe)."""
    short, long = sorted((one, other), key=len)
    return long == short or (long.startswith(short) and long[len(short)] in ".-_")


def fit(cell, learn, like):
    command = [program, "fit", "pipeline", os.path.join(data, cell), "--learn", learn, "--json"]
    for other in cells:
        if like and not same_training(other, cell) and chip(other) == chip(cell):
            command += ["--like", os.path.join(data, other)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit("%s: %s" % (cell, run.stderr.strip()))
    return json.loads(run.stdout)


def spread(cell, mean, sd):
    """Repeatability: the standard error of a plan's mean, in percent, median over plans."""
    with open(os.path.join(data, cell + ".measured.csv")) as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return statistics.median(100 * float(r[sd]) / float(r[mean]) / float(r["iterations"]) ** 0.5 for r in rows)


missed = 0
print("%-30s %-16s %28s %28s" % ("protocol", "cell", "time % mean, p95 (neighbours)", "energy % mean, p95 (neighbours)"))
for name, learn, like, time_goal, time_worst, energy_goal, energy_worst in PROTOCOLS:
    limits = learn == "all"
    found = []
    for cell in cells:
        result = fit(cell, learn, like)
        time, energy = (result[("limits_" if limits else "") + k] for k in ("time", "energy"))
        if time["mean_pct"] is None:
            continue
        near = ["%8.2f" % result["neighbours_" + k]["mean_pct"] if not limits and result["neighbours_" + k]["mean_pct"] is not None else "       -"
                for k in ("time", "energy")]
        print("%-30s %-16s %9.2f %9.2f %s %9.2f %9.2f %s" % (name, cell, time["mean_pct"], time["p95_pct"], near[0],
                                                         energy["mean_pct"], energy["p95_pct"], near[1]))
        found.append((time["mean_pct"], energy["mean_pct"]))
    if not found:
        print("%-30s no cell has what it needs" % name)
        continue
    for what, k, goal, worst in (("time", 0, time_goal, time_worst), ("energy", 1, energy_goal, energy_worst)):
        median, most = statistics.median(x[k] for x in found), max(x[k] for x in found)
        met = median <= goal and (worst is None or most <= worst)
        missed += not met
        print("%-7s %-22s median of %d cells %.2f %% (goal %.1f), worst %.2f %%%s" %
              ("ok" if met else "MISSED", name + ": " + what, len(found), median, goal, most, "" if worst is None else " (goal %.1f)" % worst))
print("repeatability of a plan's mean, by cell: " + ", ".join(
    "%s time %.3f, energy %.3f %%" % (c, spread(c, "plan_time_s", "plan_time_sd_s"), spread(c, "plan_energy_j", "plan_energy_sd_j")) for c in cells))
print("pipelines: every goal is met" if not missed else "pipelines: %d goals missed" % missed)
sys.exit(missed > 0)
END
