"""python_module.py FOLDER_OF_THE_MODULE FOLDLINE: each function of foldline.py against what the program itself prints.
Run in an empty folder, from which the module is not found by chance."""
import csv, json, os, subprocess, sys

sys.path.insert(0, sys.argv[1])
binary = os.path.realpath(sys.argv[2])
import foldline

if "pandas" in sys.modules:
    sys.exit("pandas is imported before it is needed")
passed = 0


def check(name, holds):
    global passed
    if not holds:
        sys.exit(f"not ok - {name}")
    passed += 1
    print(f"ok - {name}")


def plain(*arguments):
    return subprocess.run([binary, *arguments], capture_output=True, text=True, check=True).stdout


check("the program is found", foldline.program() == binary)
foldline.call("synth", o="t.csv", kernels=1500, mean_us=1000, seed=1)
foldline.call("synth", o="u.csv", kernels=1500, mean_us=1000, seed=2)
on = {"platform": "generic", "policy": ["assure:theta=0.9,window=4", "fixed:sm_mhz=900"]}

rows = foldline.compare("t.csv", "u.csv", seeds=2, o="kept.csv", **on)
with open("kept.csv") as f:
    written = list(csv.DictReader(f))
check("compare: every row", len(rows) == len(written) and list(rows.columns) == list(written[0]))
check("compare: policies", {"assure:theta=0.9,window=4", "baseline:clairvoyant"} <= set(rows["policy"]))
check("compare: numbers to the last digit", list(rows["energy_j"]) == [float(row["energy_j"]) for row in written])
check("compare: seeds are whole", rows["seed"].dtype == int)
check("compare: what is not known is NaN", rows["latency_p99_s"].isna().all() and rows["latency_p99_s"].dtype == float)
check("compare: blank texts are texts", set(rows["variant"]) == {""})
check("compare: what it stands on", rows.attrs["provenance"]["foldline"] == plain("--version").split()[1])
check("compare: what has no number is a text", set(rows["breaks"]) == {""} and set(rows["draw"]) == {""})
packed = foldline.compare("t.csv", "u.csv", seeds=2, o="packed.csv.gz", **on)
with open("packed.csv.gz", "rb") as f:
    check("compare: packed", f.read(2) == b"\x1f\x8b" and packed.equals(rows) and packed.attrs["head"] == rows.attrs["head"])
check("compare: what a packed one stands on", packed.attrs["provenance"]["foldline"] == rows.attrs["provenance"]["foldline"])
os.rename("packed.csv.gz", "packed.csv")
check("packed, whatever its name", foldline.read("packed.csv").equals(rows))
check("compare: means", set(rows[rows.workload == "mean"]["policy"]) >= {"fixed:sm_mhz=900"})

grid = foldline.grid("t.csv", no_oracle=True, **on)
check("grid", set(grid["policy"]) >= set(on["policy"]) and (grid["energy_j"] > 0).all())

told = json.loads(plain("run", "t.csv", "--platform", "generic", "--policy", "assure", "--json"))
once = foldline.run("t.csv", platform="generic", policy="assure")
check("run", len(once) == 1 and once.energy_j[0] == told["energy_j"] and once.attrs["result"] == told)

plain("run", "t.csv", "--platform", "generic", "--policy", "assure", "--timeline", "tl.csv", "--telemetry", "te.csv")
line = foldline.timeline("t.csv", platform="generic", policy="assure")
check("timeline", line.equals(foldline.read("tl.csv")) and line.attrs["head"]["format"] == "foldline-telemetry 1")
check("timeline: numbers", line["sm_mhz"].max() > 100 and line["power_w"].isna()[0] and (line["power_w"].dropna() > 0).all())
seen = foldline.telemetry("t.csv", platform="generic", policy="assure", every_ms=50)
check("telemetry", len(seen) > 30 and set(seen["t_ns"][:-1] % 50_000_000) == {0} and seen["energy_j"].max() > 0)

best = foldline.compare("t.csv", "u.csv", platform="generic", bound="5%")
check("baselines", list(best["workload"]) == ["t.csv", "u.csv"] and (best.oracle_bound_j <= best.oracle_j).all())
check("oracle: no worse than static", (best.oracle_j <= best.static_j * (1 + 1e-9)).all())

with open("e.json", "w") as f:
    json.dump({"foldline_experiment": 1, "platform": "generic", "traces": ["t.csv", "u.csv"],
               "policies": [{"policy": "assure", "set": {"theta": {"each": [0.95, 0.9, 0.85, 0.8]}}}]}, f)
found = foldline.search("e.json", hold_out="workload")
check("search", len(found) == 2 and found["policy"].str.startswith("assure:theta=").all())
check("search: its numbers", (found["tuned_saving_pct"] > 0).all() and found["scored_saving_pct"].dtype == float)

for kind, data in (("pareto", rows), ("regret", rows), ("pareto", packed), ("pareto", grid), ("timeline", line), ("pareto", "kept.csv"), ("timeline", "tl.csv")):
    picture = foldline.plot(kind, data)
    check(f"plot {kind}", picture._repr_svg_().lstrip().startswith("<?xml") and "</svg>" in picture._repr_svg_())
check("a frame draws what its file draws", foldline.plot("pareto", rows).svg == foldline.plot("pareto", "kept.csv").svg)
check("a timeline too", foldline.plot("timeline", line).svg == foldline.plot("timeline", "tl.csv").svg)
foldline.plot("pareto", rows).save("p.png")
with open("p.png", "rb") as f:
    check("saved", f.read(4) == b"\x89PNG")
few = foldline.plot("pareto", rows[rows.policy != "fixed:sm_mhz=900"]).svg
check("a part of the rows is another picture", few != foldline.plot("pareto", rows).svg)

for name, status, says, ask in (
    ("a policy that is none", 2, "did you mean 'assure'?", lambda: foldline.compare("t.csv", platform="generic", policy="asure")),
    ("no such file", 2, "nosuch.csv: cannot open", lambda: foldline.run("nosuch.csv", platform="generic", policy="assure")),
    ("an option that is none", 2, "did you mean '--seed", lambda: foldline.compare("t.csv", seedz=3)),
    ("a picture that is none", 2, "nosuch", lambda: foldline.plot("nosuch", rows)),
):
    try:
        ask()
    except foldline.FoldlineError as error:
        check(name, error.status == status and says in error.message and says in str(error) and error.command)
    else:
        check(name, False)
os.rename("t.csv", "-t.csv")
check("an input that looks like an option", len(foldline.run("-t.csv", platform="generic", policy="assure")) == 1)
os.environ["FOLDLINE"] = "/nowhere/foldline"
try:
    foldline.program()
except FileNotFoundError as error:
    check("no program", "/nowhere/foldline" in str(error))
else:
    check("no program", False)
print(f"{passed} passed")
