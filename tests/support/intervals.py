"""What `advise` says of 40 made-up programs from logs with noise, against the truth (tests/intervals.sh).

    intervals.py PROGRAM ROOT

Twenty programs follow measured sweeps (of FOLDLINE_DATA, else traces/samples), between their clocks by the line
through them. Twenty follow laws
that the program does not have: a plateau below which the bandwidth does not fall, a sharpness of 1.5, and a top clock
that the board does not reach. Each runs RUNS times at the top clock and at about 70 % of it; a run's time and power each
have a noise of 2 %. `advise` reads the nvidia-smi logs of these runs without a platform. Seeds are the programs' numbers.

Goals: of the stated 95 % intervals of energy saved and slowdown at least 90 % hold the truth, at a median half-width of at
most 5 points; of the clocks that it names under a bound of 5 or 10 % at a risk of 5 % at most 8 % break the bound."""
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

from accuracy import Board

PROGRAM, ROOT = sys.argv[1], sys.argv[2]
NOISE, RUNS, STEP_S, LENGTH_S, BOUNDS = 0.02, 3, 0.1, 20, (0.05, 0.10)


def measured():
    """[(clocks, seconds, watts)] of workloads of measured sweeps with five clocks or more."""
    data = os.environ.get("FOLDLINE_DATA")
    paths = [os.path.join(data, "sweeps", name) for name in ("v100-300w.csv", "gtx1080ti.csv", "gtx-titan-x.csv")] if data else []
    paths = [p for p in paths if os.path.exists(p)] or [os.path.join(ROOT, "traces/samples/energyucb-table1.csv")]
    boards = [list(Board(p).clocks.values()) for p in paths]
    return [(sorted(d), [d[f][0] for f in sorted(d)], [d[f][1] for f in sorted(d)])
            for k in range(max(map(len, boards))) for b in boards for d in b[k:k + 1] if len(d) >= 5]


def line(mhz, value):
    def at(f):
        i = next((i for i in range(1, len(mhz)) if f <= mhz[i]), len(mhz) - 1)
        w = min(1, max(0, (f - mhz[i - 1]) / (mhz[i] - mhz[i - 1])))
        return value[i - 1] + w * (value[i] - value[i - 1])
    return at


def law(kind, draw):
    """(top clock, time(f), power(f)) of a program whose law the predictions do not have."""
    top, core, rest = 1800, draw.uniform(0.2, 0.9), draw.uniform(0.3, 0.9)
    reached = top * draw.uniform(0.93, 0.97) if kind == "top" else top
    flat = top * draw.uniform(0.6, 0.8) if kind == "plateau" else 0
    p = 1.5 if kind == "sharpness" else draw.uniform(4, 9)

    def norm(a, b):
        return (a ** p + b ** p) ** (1 / p)

    def time(f):
        f = min(f, reached)
        return norm(core * reached / f, (1 - core ** p) ** (1 / p) * (reached / max(f, flat) if flat else 1) ** 0.2)

    def power(f):
        x = min(f, reached) / reached
        v = 1 + 0.45 * max(0, (x - 0.45) / 0.55) ** 1.6
        return 300 * (1 - rest * (1 - x * (v / 1.45) ** 2))
    return top, time, power


def programs():
    out, sweeps = [], measured()
    for i in range(40):
        draw = random.Random(i)
        if i % 2:
            out.append((f"law{i}", *law(("plateau", "sharpness", "top")[i // 2 % 3], draw), draw))
        else:
            mhz, seconds, watts = sweeps[i // 2 % len(sweeps)]
            out.append((f"sweep{i}", mhz[-1], line(mhz, seconds), line(mhz, watts), draw))
    return out


def log(path, mhz, time_s, power_w):
    idle, busy = round(1 / STEP_S), round(time_s / STEP_S)
    with open(path, "w", encoding="utf-8") as f:
        f.write("timestamp, utilization.gpu [%], clocks.current.sm [MHz], power.draw [W]\n")
        for k in range(busy + 2 * idle):
            runs, ms = idle <= k < idle + busy, round(1000 * STEP_S * k)
            f.write(f"2026/01/01 10:{ms // 60000:02d}:{ms // 1000 % 60:02d}.{ms % 1000:03d}, {100 * runs}, {mhz:g}, "
                    f"{power_w if runs else 40:.2f}\n")


def main():
    held, halves, broken, named = [], [], [], 0
    with tempfile.TemporaryDirectory() as work:
        for name, top, time, power, draw in programs():
            files, unit = [], LENGTH_S / time(top)
            for mhz in (15 * round(0.7 * top / 15), top):
                for k in range(RUNS):
                    files.append(os.path.join(work, f"{name}@{mhz:g}.{k}.csv"))
                    log(files[-1], mhz, unit * time(mhz) * (1 + NOISE * draw.gauss(0, 1)),
                        power(mhz) * (1 + NOISE * draw.gauss(0, 1)))
            for bound in BOUNDS:
                done = subprocess.run([PROGRAM, "advise", *files, "--workload", name, "--bound", str(bound), "--risk",
                                       "0.05", "--json"], capture_output=True, text=True, check=False)
                if done.returncode:
                    sys.exit(f"{name}: {done.stderr}")
                a = json.loads(done.stdout)["advice"][0]
                mhz = a["sm_mhz"]
                slow = time(mhz) / time(top) - 1
                saved = 1 - time(mhz) * power(mhz) / (time(top) * power(top))
                broken.append(slow > bound)
                named += mhz < top
                for key, truth in (("slowdown_pct", slow), ("saving_pct", saved)):
                    x = a[key]
                    if mhz < top and x["low"] is not None:
                        held.append(x["low"] <= 100 * truth <= x["high"])
                        halves.append((x["high"] - x["low"]) / 2)
    share, half, late = 100 * statistics.fmean(held), statistics.median(halves), 100 * statistics.fmean(broken)
    print(f"40 programs, noise of {100 * NOISE:g} %: of {len(held)} intervals {share:.1f} % hold the truth (90), median "
          f"half-width {half:.2f} points (5); of {len(broken)} choices, {named} of them below the top, {late:.1f} % break "
          f"the bound (8)")
    return 0 if share >= 90 and half <= 5 and late <= 8 else 1


sys.exit(main())
