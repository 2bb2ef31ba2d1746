#!/usr/bin/env bash
# Forty programs of known laws, their logs, and what advise says of them: advise_logs.sh PATH_TO_FOLDLINE
# Fixed before any result was seen: the seed, the laws, the shares of each kind of log, and the limits at the end. The truth
# of a program is its law; the log of a run is what nvidia-smi, or foldline record, prints of it.
. "$(dirname "$0")/program/shell.sh"

cat >"$dir/forty.py" <<'PY'
import json, os, random, subprocess, sys

program, folder = sys.argv[1:3]
TOP, LOW, STEP = 1410, 990, 15  # MHz: the reference, and 70 % of it
PROGRAMS, GPUS = 40, 4
draw = random.Random(20260117)


def times(p, mhz):  # s
    x = mhz / TOP
    return p["t0"] * (1 + p["b"] * (x**-4 - 1)) ** 0.25


def watts(p, mhz):
    def v(x):
        return 1 + 0.5 * max(0, (x - 0.4) / 0.6) ** 1.5

    x = mhz / TOP
    return p["p0"] * (1 - p["d"] * (1 - x * (v(x) / v(1)) ** 2))


# Every fourth program runs on four GPUs, every fifth has logs of foldline's own form whose head names it, every third has a
# clock that wanders by a step. Cut logs end under load: programs 6, 13, 20, ... at the low clock, 8, 22, 36 at the top one.
programs = []
for n in range(PROGRAMS):
    programs.append({
        "name": f"job{n:02d}", "t0": draw.uniform(18, 40), "b": draw.uniform(0.05, 0.9), "p0": draw.uniform(140, 320),
        "d": draw.uniform(0.4, 0.85), "gpus": GPUS if n % 4 == 3 else 1, "head": n % 5 == 2, "wanders": n % 3 == 1,
        "cut": LOW if n % 7 == 6 else TOP if n % 14 == 8 else None,
    })


def write(path, p, mhz, cut=False):
    length = times(p, mhz) * draw.gauss(1, 0.003)
    level = [watts(p, mhz) * (1 + 0.05 * g) for g in range(p["gpus"])]
    end = 3 + length + 3
    if cut:
        end = 3 + length * draw.uniform(0.5, 0.95)
    with open(path, "w") as f:
        if p["head"]:
            f.write(f"# foldline-telemetry 1\n# workload: {p['name']}\nt_ns,device,power_w,sm_mhz,mem_mhz,util_gpu_pct\n")
        else:
            f.write("timestamp, index, power.draw [W], clocks.current.sm [MHz], clocks.current.memory [MHz], utilization.gpu [%]\n")
        k = 0
        while k * 0.2 < end:
            t = k * 0.2
            k += 1
            busy = 3 <= t < 3 + length
            for g in range(p["gpus"]):
                clock = mhz - STEP * (p["wanders"] and draw.random() < 0.4) if busy else 210
                w = level[g] * draw.gauss(1, 0.01) if busy else 40
                util = draw.randint(90, 100) if busy else 0
                if p["head"]:
                    f.write(f"{round(t * 1e9)},{g},{w:.2f},{clock},1215,{util}\n")
                else:
                    ms = round(t * 1000)
                    f.write(f"2026/03/01 10:{ms // 60000:02d}:{ms // 1000 % 60:02d}.{ms % 1000:03d}, {g}, {w:.2f} W, {clock} MHz, 1215 MHz, {util} %\n")


def advise(*files):
    p = subprocess.run([program, "advise", "--bound", "50%", "--json", *files], capture_output=True, text=True)
    return p.returncode, json.loads(p.stdout)["advice"] if p.returncode == 0 else [], p.stderr


def number(row):
    return (row.get("saving_pct") or {}).get("value")


def of_others(p, row, own):
    """Whether a row answers for a program with files that are not its own, or without saying with which."""
    return not row["workload"].startswith(p["name"]) or sorted(map(os.path.basename, row.get("files", []))) != sorted(own)


tally = {"wrong files": 0, "cut as whole": 0, "sound refused": 0, "off the law": 0, "one clock with decimals": 0}
sound = cuts = 0

# One log of each program, at clocks of its own: nothing is known of other clocks, so no saving may be stated.
os.makedirs(f"{folder}/single")
for n, p in enumerate(programs):
    write(f"{folder}/single/{'run%d' % n if p['head'] else p['name']}.csv", p, LOW if n % 2 else TOP, bool(p["cut"]))
single = sorted(f"{folder}/single/{f}" for f in os.listdir(f"{folder}/single"))
status, rows, said = advise(*single)
for p in programs:
    mine = [r for r in rows if r["workload"].split(" ")[0] == p["name"]]
    tally["sound refused"] += not p["cut"] and len(mine) != p["gpus"]
    tally["one clock with decimals"] += any(number(r) for r in mine)
tally["wrong files"] += sum(number(r) is not None for r in rows if not r.get("files"))
print(f"40 logs of 40 programs: status {status}, {len(rows)} rows", said.strip()[:160])

# All at one clock, on a platform whose constants say nothing of these programs: neither may each get a number.
os.makedirs(f"{folder}/alike")
for p in programs:
    write(f"{folder}/alike/{p['name']}.csv", dict(p, wanders=False), TOP)
alike = sorted(f"{folder}/alike/{f}" for f in os.listdir(f"{folder}/alike"))
status, rows, said = advise(*alike, "--platform", "a100")
tally["one clock with decimals"] += sum(bool(number(r)) for r in rows)
tally["wrong files"] += sum(number(r) is not None and not r.get("files") for r in rows)
tally["sound refused"] += sum(p["gpus"] for p in programs) - len(rows)
print(f"40 logs at one clock: status {status}, {len(rows)} rows", said.strip()[:160])

# Two different programs, at two clocks: no answer for either.
for a, b in ((0, 1), (4, 5), (10, 9), (16, 29), (24, 21)):
    status, rows, said = advise(f"{folder}/single/job{a:02d}.csv", f"{folder}/single/job{b:02d}.csv")
    tally["wrong files"] += any(number(r) is not None for r in rows)

# Two logs of each program, all at once, as a folder: each has its own answer, by its own files.
os.makedirs(f"{folder}/pairs")
for n, p in enumerate(programs):
    p["files"] = []
    for mhz in (TOP, LOW):
        p["files"].append(f"run{n}-{mhz}.csv" if p["head"] else f"{p['name']}@{mhz}.csv")
        write(f"{folder}/pairs/{p['files'][-1]}", p, mhz, p["cut"] == mhz)
as_folder = advise(f"{folder}/pairs")
as_files = advise(*sorted(f"{folder}/pairs/{f}" for f in os.listdir(f"{folder}/pairs")))
print(f"80 logs of 40 programs: status {as_files[0]}, {len(as_files[1])} rows; as a folder: {as_folder[0]}, {len(as_folder[1])} rows", as_files[2].strip()[:160])
for status, rows, said in (as_folder, as_files):
    for p in programs:
        mine = [r for r in rows if r["workload"].split(" ")[0] == p["name"]]
        cuts += bool(p["cut"])
        sound += not p["cut"]
        answered = [r for r in mine if number(r) is not None]
        tally["wrong files"] += sum(of_others(p, r, p["files"]) for r in answered) if not p["cut"] else 0
        tally["cut as whole"] += bool(p["cut"]) and len(answered) > 0
        tally["sound refused"] += not p["cut"] and len(answered) != p["gpus"]
        for r in answered if not p["cut"] else []:  # what the named clock saves, to noise and a wandering step
            right = 100 * (1 - times(p, r["sm_mhz"]) * watts(p, r["sm_mhz"]) / times(p, TOP) / watts(p, TOP))
            tally["off the law"] += abs(number(r) - right) > 2.5
    tally["wrong files"] += sum(number(r) is not None and not r.get("files") for r in rows)

# Each pair by itself.
for p in programs:
    status, rows, said = advise(*(f"{folder}/pairs/{f}" for f in p["files"]))
    answered = [r for r in rows if number(r) is not None]
    cuts += bool(p["cut"])
    sound += not p["cut"]
    tally["cut as whole"] += bool(p["cut"]) and len(answered) > 0
    tally["sound refused"] += not p["cut"] and len(answered) != p["gpus"]

print(f"of {sound} sound pairs and {cuts} cut ones:", ", ".join(f"{v} {k}" for k, v in tally.items()))
bad = tally["wrong files"] or tally["cut as whole"] or tally["off the law"] or tally["one clock with decimals"] or tally["sound refused"] > 2
sys.exit(1 if bad else 0)
PY
succeed "no answer for another program, no cut log taken as whole, at most 2 sound logs refused" '^of ' python3 "$dir/forty.py" "$f" "$dir"
sed 's/^/    /' "$dir/out"
finish
