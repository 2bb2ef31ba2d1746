"""python_module.py FOLDER_OF_THE_MODULE FOLDLINE SAMPLES: each function of foldline.py against what the program itself prints.
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
check("search: all that was tried", list(foldline.search("e.json")["rank"]) == [1, 2, 3, 4])
check("search: its numbers", (found["tuned_saving_pct"] > 0).all() and found["scored_saving_pct"].dtype == float)

# ---- frames where files go in, and nothing of them stays ----
import pandas, tempfile

tempfile.tempdir = os.path.join(os.getcwd(), "tmp")
os.mkdir(tempfile.tempdir)
sweep = foldline.read(os.path.join(sys.argv[3], "energyucb-528.pot3d.csv"))
sweep.to_csv("sweep.csv", index=False)
clock = foldline.advise(sweep, bound="5%", o="advice.csv")
check("advise: a frame is its file", clock.equals(foldline.advise("sweep.csv", bound="5%")) and clock.sm_mhz[0] == 1135)
check("advise: its numbers", clock.attrs["result"]["advice"][0]["saving_pct"]["low"] == clock.saving_pct_low[0])
check("advise: kept", clock.equals(foldline.read("advice.csv")) and clock.set[0] == "nvidia-smi -lgc 1135,1135")
own = pandas.DataFrame({"workload": ["a"] * 3, "sm_mhz": [800, 1200, None], "time_s": [9.5, 8.5, 8], "energy_j": [70, 61.5, 90]})
own.loc[2, "sm_mhz"] = 1600
check("advise: a user's own columns", foldline.advise(own, bound=0.1).sm_mhz[0] == 1105)
trace = foldline.read("t.csv")
check("compare: two frames", set(foldline.compare(trace, foldline.read("u.csv"), no_oracle=True, **on)["workload"]) == {"frame1.csv", "frame2.csv", "mean"})
check("run: a frame", foldline.run(trace, platform="generic", policy="assure").energy_j[0] == once.energy_j[0])
check("an option: a frame", foldline.run("t.csv", platform="generic", policy="assure", kinds=foldline.read("t.kinds.csv")).energy_j[0]
      == foldline.run("t.csv", platform="generic", policy="assure", kinds="t.kinds.csv").energy_j[0])
stages = os.path.join(sys.argv[3], "four-stages.pipeline.csv")
slow = foldline.plan(stages, slowdown="5%", o="p.plan.csv", rows="p.rows.csv")
check("plan", slow["rows"][slow["chosen"]]["energy_j"] < 0.9 * slow["rows"][slow["default"]]["energy_j"])
check("plan: of a frame", foldline.plan(foldline.read(stages), slowdown="5%") == slow)
check("plan: the plan itself", {"rank", "instruction", "sm_mhz"} <= set(foldline.read("p.plan.csv").columns))
check("fit", foldline.fit("policy sweetspot", sweep)["workloads"][0]["sm_mhz"] == 1200)
check("fit: what it writes", foldline.fit("device", sweep, o="dev.json") and os.path.exists("dev.json"))
page = foldline.report(rows, no_figures=True, about="a frame's page", o="page.html")
check("report", "a frame's page" in page["html"] and page["path"] == "page.html" and os.path.exists("page.html"))
check("report: not kept", foldline.report("kept.csv", no_figures=True, about="x")["path"] is None)
check("regress: a baseline", foldline.regress("e.json", bless=True, o="base.json").empty)
gates = foldline.regress("base.json")
check("regress", len(gates) > 9 and not gates["failed"].any() and {"metric", "recorded", "now"} <= set(gates.columns))
try:
    foldline.regress("base.json", bound="0.1%")
except foldline.FoldlineError as error:
    check("regress: a gate", error.status == 1 and any(row["failed"] for row in json.loads(error.output)["rows"]))
else:
    check("regress: a gate", False)
try:
    foldline.advise(own.drop(columns="time_s"))
except foldline.FoldlineError as error:
    check("a frame that is none", error.status == 2 and error.message.startswith("foldline advise: frame1.csv:"))
check("nothing stays", not os.listdir(tempfile.tempdir))

for kind, data in (("pareto", rows), ("regret", rows), ("pareto", packed), ("pareto", grid), ("timeline", line), ("pareto", "kept.csv"), ("timeline", "tl.csv"), ("frontier", "p.rows.csv"), ("frontier", foldline.read("p.rows.csv"))):
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
