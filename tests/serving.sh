#!/usr/bin/env bash
# How well are measured serving engines predicted? In FOLDLINE_DATA, or its folder serving:
#   RUN.engine.md with RUN.requests.csv, RUN.prefix.csv and the layer tables RUN.dense.csv, RUN.per_sequence.csv,
#   RUN.attention.csv, and RUN.moe.csv of a mixture of experts; also in folders below; tables without a run are passed over:
#     each run's latencies from arrivals and layer tables alone, and after a calibration with the first half of its requests;
#   NAME-steps.csv: step times and powers over clocks, each clock left out in turn.
# Prints a table. Ends with 1 where a goal is missed, with 77 where there is no data.
#   FOLDLINE_DATA=DIR tests/serving.sh PROGRAM
set -u
f=$(realpath "${1:?usage: FOLDLINE_DATA=DIR tests/serving.sh PROGRAM}")
data=${FOLDLINE_DATA:-/nowhere}
[ ! -d "$data/serving" ] || data=$data/serving
[ -n "$(find "$data" '(' -name '*.engine.md' -o -name '*-steps.csv' ')' 2>/dev/null)" ] || { echo "FOLDLINE_DATA holds no serving: skipped"; exit 77; }
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT

F=$f DATA=$data OUT=$dir python3 - <<'END'
import csv, glob, json, os, re, subprocess, sys

program, data, out = os.environ["F"], os.environ["DATA"], os.environ["OUT"]

# Goals in percent: from layer tables alone, and after a calibrating half-run; of an inner clock left out.
ALONE = {"tpot_p50": 6, "e2e_p50": 10, "ttft_mean": 12}
CALIBRATED = 3
CLOCK = 5
# Layer tables do not say at which clock they were measured, and nothing here runs at another: any number will do.
SM_MHZ = "2500"
NEVER_SHORT = "1000000"  # KV blocks of a run whose number was not recorded and that never wanted for any


def rows(path):
    with open(path) as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def fit(*arguments):
    run = subprocess.run([program, "fit", "serving", "--json", *arguments], capture_output=True, text=True)
    if run.returncode:
        sys.exit("fit serving %s: %s" % (" ".join(arguments), run.stderr.strip()))
    return json.loads(run.stdout)


def settings(path):
    table = {}
    for line in open(path):
        cell = [x.strip() for x in line.strip().strip("|").split("|")]
        if len(cell) == 2:
            table[cell[0]] = cell[1]
    number = lambda key, otherwise: (re.match(r"\d+", table.get(key, "")) or [otherwise])[0]
    layers = next((v for k, v in table.items() if k.startswith("layers")), "")
    block = number("KV block size (tokens)", "16")
    tokens = number("KV tokens", "")
    blocks = number("KV blocks", str(int(tokens) // int(block)) if tokens else "")
    shape = re.match(r"[\d, ]+", next((v for k, v in table.items() if k.startswith("layers")), ""))[0].split(",")
    chosen = re.findall(r"\d+", table.get("experts, active for a token", ""))
    experts = ["--experts", chosen[0], "--top-k", chosen[1], "--hidden", shape[1].strip(), "--data-parallel",
               number("data parallel", "1")] if len(chosen) == 2 else []
    if experts and table.get("expert parallel", "no").split()[0] == "yes":
        experts.append("--expert-parallel")
    off = lambda key: table.get(key, "on").split()[:1] in (["off"], ["no"])
    switch = {"asynchronous scheduling": "--no-async", "prefix caching": "--no-prefix-cache", "chunked prefill": "--no-chunked-prefill"}
    return [
        "--layers", re.match(r"\d+", layers)[0], "--sm-mhz", SM_MHZ, "--max-seqs", number("max_num_seqs", "256"),
        "--token-budget", number("token budget (max_num_batched_tokens)", "2048"),
        "--tensor-parallel", number("tensor parallel", "1"), "--block-tokens", block,
        "--kv-blocks", str(int(blocks) - 1) if blocks else NEVER_SHORT,  # vLLM keeps one for itself
    ] + experts + [option for key, option in switch.items() if off(key)]


def request_file(run):
    """The run's requests with the tokens that each shares with an earlier one."""
    shared = {int(r["request"]): r["shared_tokens"] for r in rows(found[run + ".prefix.csv"])} if run + ".prefix.csv" in found else {}
    path = os.path.join(out, "requests.csv")
    with open(path, "w") as file:
        table = rows(found[run + ".requests.csv"])
        file.write("# foldline-requests 1\n" + ",".join(table[0]) + ",cached_tokens\n")
        for i, row in enumerate(table):
            file.write(",".join(row.values()) + ",%s\n" % shared.get(i, 0))
    return path


missed = judged = 0


def judge(what, value, goal):
    global missed, judged
    judged += 1
    met = goal is None or abs(value) <= goal
    missed += not met
    print("%-7s %-58s %+8.2f %%%s" % ("ok" if met else "MISSED", what, value, "" if goal is None else " (goal %g)" % goal))


found = {}  # of each file of a run its path, wherever below the folder it lies
for path in sorted(glob.glob(os.path.join(data, "**", "*.*"), recursive=True), reverse=True):
    found[os.path.basename(path)] = path

for name in sorted(file[: -len(".engine.md")] for file in found if file.endswith(".engine.md")):
    if name + ".requests.csv" not in found:
        print("        %s: its tables are here and its requests are not" % name)
        continue
    requests = request_file(name)
    common = ["--dense", found[name + ".dense.csv"], "--per-sequence", found[name + ".per_sequence.csv"],
              "--attention", found[name + ".attention.csv"], "--run", requests] + settings(found[name + ".engine.md"])
    if name + ".moe.csv" in found:
        common += ["--moe", found[name + ".moe.csv"]]
    alone, half = fit(*common), fit(*common, "--calibrate", "half")
    for key in alone["run"]:
        judge("%s, layer tables alone: %s" % (name, key), alone["run"][key]["error_pct"], ALONE.get(key))
    for key in ALONE:
        judge("%s, calibrated by half: %s" % (name, key), half["run"][key]["error_pct"], CALIBRATED)
        judge("%s, the other half alone: %s" % (name, key), half["unseen"][key]["error_pct"], CALIBRATED)
    print("        " + alone["assumed"])
    if "skewed_routing" in alone:
        print("        with skewed routing: " + ", ".join("%s %.4g" % one for one in alone["skewed_routing"].items()))
    print("        factors %.3f, %.3f, %.3f; %s" % (half["factor"], half["factor_decodes"], half["factor_experts"], alone["clocks"]))

for table in sorted(glob.glob(os.path.join(data, "*-steps.csv"))):
    result = fit("--steps", table)
    for clock in result["left_out_clocks"]:
        for what in "time", "power":
            if clock[what]["mean_pct"] is not None:
                judge("%s, %g MHz left out%s: %s" % (os.path.basename(table), clock["sm_mhz"], ", an end" if clock["end"] else "", what),
                      clock[what]["mean_pct"], None if clock["end"] else CLOCK)
    print("        " + result["clocks"])
if not judged:
    print("serving: no run to judge")
    sys.exit(77)
print("serving: every goal is met" if not missed else "serving: %d goals missed" % missed)
sys.exit(missed > 0)
END
