"""formats_agree.py READ_FORMATS [MUTANTS]: what tests/formats.sh shows.
1. Every sample of the tree holds by the pages (formats.py) and is read by the program's readers, with no row left out.
2. Files that release 1.0 wrote (tests/golden/formats-1.0) are read, and what was read is what it was then.
3. Planted violations are refused by both; and of MUTANTS changed copies of each file (seeded) both say the same."""
import copy
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile

import formats

os.chdir(formats.ROOT)
GOLDEN = "tests/golden/formats-1.0"
SAMPLES = ("traces/samples", "models", "harness/experiments", "tests/adversary", "tests/gate")
NONE = {  # no format of the pages
    "traces/samples/tutorial.nsys.csv.gz": "a file of Nsight Systems",
    "traces/samples/energyucb-published.json": "what a paper printed, for fit policy draws",
    "harness/experiments/ladder.csv": "a result",
    "tests/gate/gate.baseline.json": "a result",
}
MORE = (  # to change, too
    ("platform", "models/platforms/apu-a10-5800k.json"), ("experiment", "harness/experiments/first-light.json"),
    ("pipeline", "traces/samples/four-stages.pipeline.csv"), ("kernels", "traces/samples/inference.csv"))
NAMES = {"Lists of instructions": "order"}
BARE = {"sequences": "layers", "layers": "layers", "attention": "attention", "experts": "experts", "steps": "steps",
        "order": "Lists of instructions"}
program = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
mutants = int(sys.argv[2]) if len(sys.argv) > 2 else 40
failures = 0


def bad(*what):
    global failures
    failures += 1
    print("not ok -", *what)


def read(name, path, out=""):
    """None where the program's reader takes the file, else why not."""
    program.stdin.write(f"{name} {path} {out}\n")
    program.stdin.flush()
    said = program.stdout.readline().strip()
    return None if said == "ok" else said


def by_pages(path, asked=None):
    """(format, None) where the file holds by the pages, else (None, why not)."""
    try:
        name = formats.check(path, BARE.get(asked, asked and "foldline-" + asked))
        return NAMES.get(name, name.replace("foldline-", "").replace("foldline_", "")), None
    except formats.Wrong as e:
        return None, f"{e.args[0]}: {e.args[1]}"


def reader_of(name, path):
    if name == "layers" and "sequences" in formats.Table(path).header:
        return "sequences"
    return name


def samples():
    count = 0
    for top in SAMPLES:
        for folder, _, files in sorted(os.walk(top)):
            for f in sorted(files):
                path = os.path.join(folder, f)
                if not path.endswith((".csv", ".csv.gz", ".json")) or path in NONE:
                    continue
                name, why = by_pages(path)
                if why:
                    bad(f"{path}: {why}")
                    continue
                count += 1
                if name == "measured":
                    path = path.replace(".measured.csv", "")
                elif name in ("instructions", "caps", "table of a policy"):
                    continue  # read with measured, or with the policy that asks for it
                why = read(reader_of(name, path), path)
                if why:
                    bad(f"{path}: the pages take it, the program does not: {why}")
    print(f"{count} samples hold by the pages")


def goldens(scratch):
    """Returns [(reader, path)]."""
    found = []
    for f in sorted(os.listdir(GOLDEN)):
        path = os.path.join(GOLDEN, f)
        if f.endswith(".values"):
            continue
        name, why = by_pages(path)
        if why:
            bad(f"{path}: {why}")
            continue
        if f.startswith("m."):
            if not f.startswith("m.measured"):
                continue
            path = os.path.join(GOLDEN, "m")
        else:
            name = reader_of(name, path)
            found.append((name, path))
        out = os.path.join(scratch, "again")
        why = read(name, path, out)
        then = os.path.splitext(path)[0] + ".values"
        then = then if os.path.exists(then) else path
        if why:
            bad(f"{path}: {why}")
        elif open(out).read() != open(then).read():
            bad(f"{path}: what was read is not what 1.0 read, {then}")
    print(f"{len(found)} files of 1.0 are read as 1.0 read them")
    return found


# ---- changed copies ----

CELLS = ["", "0", "1", "-1", "2", "1.5", "1e400", "nan", "N/A", "x", "99999999999999999999", "*",
         "inf", "none", "n.a.", "Timed out", "5 errors", "[x]", " 5", '"5"', '"5', "+7", ".5", "5.", "1e3",
         "0x10", "host", "yes"]
VALUES = [0, 1, -1, 2.5, 1e9, "x", "", True, None, [], {}, [1], [[1, 2]]]


def change_csv(text, r):
    lines = text.split("\n")[:-1]
    heads = [i for i, l in enumerate(lines) if l.startswith("#")]
    header = next(i for i, l in enumerate(lines) if not l.startswith("#"))
    rows = range(header + 1, len(lines))
    what = r.randrange(14)
    if what < 6:  # a cell
        i = r.choice(rows)
        cells = lines[i].split(",")
        k = r.randrange(len(cells))
        other = lines[r.choice(rows)].split(",")
        number = cells[k].replace(".", "", 1).isdigit()
        cells[k] = str(float(cells[k]) * 1000) if number and r.random() < 0.2 else r.choice(CELLS + other)
        lines[i] = ",".join(cells)
    elif what == 6:  # a column is gone, doubled or has another name
        k = r.randrange(len(lines[header].split(",")))
        how = r.randrange(3)
        for i in [header, *rows]:
            cells = lines[i].split(",")
            if how == 0 and k < len(cells):
                del cells[k]
            elif how == 1:
                cells.append(cells[min(k, len(cells) - 1)])
            elif i == header:
                cells[k] = r.choice(["x", "", cells[k] + "s", cells[k].upper()])
            lines[i] = ",".join(cells)
    elif what == 7:  # two columns change places
        a, b = (r.randrange(len(lines[header].split(","))) for _ in range(2))
        for i in [header, *rows]:
            cells = lines[i].split(",")
            if max(a, b) < len(cells):
                cells[a], cells[b] = cells[b], cells[a]
            lines[i] = ",".join(cells)
    elif what == 8:
        a, b = r.choice(rows), r.choice(rows)
        lines[a], lines[b] = lines[b], lines[a]
    elif what == 9:
        del lines[r.choice(rows)]
    elif what == 10:
        lines.insert(r.choice(rows), lines[r.choice(rows)])
    elif what == 11 and heads:
        i = r.choice(heads)
        key, colon, value = lines[i].partition(":")
        lines[i] = r.choice([f"{key}{colon} {r.choice(CELLS)}", lines[i].replace(" 1", " 2"),
                             lines[i].replace("# ", "#"), "# x", lines[i] + "\n" + lines[i]])
    elif what == 12:
        lines[r.choice(rows)] += r.choice([",", " ", "\r", "x", '"', "\n", "\n# x: y"])
    else:
        whole = "\n".join(lines) + "\n"
        return whole[:r.randrange(len(whole) // 2, len(whole))]
    return "\n".join(lines) + "\n"


def change_json(tree, r):
    tree = copy.deepcopy(tree)
    places = []

    def walk(v):
        for k in list(v) if isinstance(v, dict) else range(len(v)) if isinstance(v, list) else ():
            places.append((v, k))
            walk(v[k])

    walk(tree)
    at, key = r.choice(places)
    what = r.randrange(5)
    if what == 0:
        del at[key]
    elif what == 1 and isinstance(at, dict):
        at["nobody_knows"] = 1
    elif what == 2 and formats.is_number(at[key]):
        at[key] *= r.choice([1000, -1, 0.001, 0])
    else:
        at[key] = r.choice(VALUES)
    return tree


def changed(path, r):
    with open(path, newline="") as f:
        text = f.read()
    return json.dumps(change_json(json.loads(text), r)) if path.endswith(".json") else change_csv(text, r)


def agree(found, scratch):
    refused = count = 0
    for name, path in found + list(MORE):
        r = random.Random(f"{os.path.basename(path)} 1")
        copy_ = os.path.join(scratch, "copy" + os.path.splitext(path)[1])
        for k in range(mutants if name != "journal" else 0):
            with open(copy_, "w", newline="") as f:
                f.write(changed(path, r))
            _, pages = by_pages(copy_, name)
            program_ = read(name, copy_)
            count += 1
            refused += pages is not None
            if (pages is None) != (program_ is None):
                bad(f"{path}, copy {k}: by the pages {pages or 'right'}; by the program {program_ or 'right'}")
                with open(copy_, newline="") as f, open(f"{scratch}/disagreed", "a") as kept:
                    kept.write(f"=== {path} {k}\n{f.read()}")
    print(f"{count} changed copies, {refused} refused, by both")


PLANTED = {  # what is wrong: file, text, its replacement
    "a power in mW": ("telemetry.csv", "70.25", "70250"),
    "a clock in kHz": ("sweep.csv", "a,,900,", "a,,900000,"),
    "an energy in kJ": ("sweep.csv", ",2000,", ",2,"),
    "a time in us": ("requests.csv", "\n1000000,16777216,1", "\n1000,16777216,1"),
    "a missing column": ("kernels.csv", ",block_z", ""),
    "telemetry without a device": ("telemetry.csv", "t_ns,device,", "t_ns,gpu,"),
    "unsorted telemetry": ("telemetry.csv", "0,0,70.25", "200000000,0,70.25"),
    "unsorted targets": ("target.csv", "60200000000", "0"),
    "an overlap": ("kernels.csv", "0,0,7,20000,320000", "0,0,7,20000,1320000"),
    "another version": ("kinds.csv", "foldline-kinds 1", "foldline-kinds 2"),
    "a version below line 1": ("target.csv", "t_ns,watts", "# foldline-target 2\nt_ns,watts"),
    "a trace that may be alone": ("kernels.csv", "\ndevice,", "\n# alone: yes\ndevice,"),
    "a step of 0 above the ladder": ("platform.json", "[500, 1000]", '{"from": 500, "to": 1000, "steps": [500, 0]}'),
    "phases that are no whole": ("kinds.csv", ",0.75,", ",0.7,"),
    "a ladder that does not ascend": ("platform.json", "[500, 1000]", "[1000, 500]"),
    "a number without a source": ("platform.json", '"count": "assumed: invented, a round number",', ""),
    "a row of a journal that changed": ("journal", "nvboost", "nvboast"),
}


def planted(found, scratch):
    by_name = {os.path.basename(path): (name, path) for name, path in found}
    for what, (file, old, new) in PLANTED.items():
        name, path = by_name[file]
        text = open(path).read()
        copy_ = os.path.join(scratch, "copy" + os.path.splitext(path)[1])
        if old not in text:
            bad(f"{what}: {path} has no {old!r}")
        with open(copy_, "w") as f:
            f.write(text.replace(old, new, 1))
        for who, why in (("the pages", by_pages(copy_)[1]), ("the program", read(name, copy_))):
            if not why:
                bad(f"{what}: {who} take it")
    print(f"{len(PLANTED)} planted violations are refused")


with tempfile.TemporaryDirectory() as scratch:
    samples()
    found = goldens(scratch)
    planted(found, scratch)
    agree(found, scratch)
    if failures and os.path.exists(f"{scratch}/disagreed") and os.environ.get("FL_KEEP"):
        os.replace(f"{scratch}/disagreed", os.environ["FL_KEEP"])
program.stdin.close()
sys.exit(failures > 0)
