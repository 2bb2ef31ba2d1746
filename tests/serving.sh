#!/usr/bin/env bash
# How well are measured serving engines predicted? In FOLDLINE_DATA, or its folder serving:
#   RUN.engine.md with RUN.requests.csv (without it RUN.RANK.requests.csv of each rank), RUN.prefix.csv and the layer tables RUN.dense.csv,
#   RUN.per_sequence.csv, RUN.attention.csv, and RUN.moe.csv of a mixture of experts; also in folders below; tables without a run are
#   passed over:
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


# A setting of the engine's page by any of these names, as vLLM, the page or a person may write it.
NAMES = {"tp": ("tensor parallel", "tp", "tensor_parallel"), "dp": ("data parallel", "dp", "data_parallel"),
         "ep": ("expert parallel", "ep", "expert_parallel", "enable_expert_parallel"),
         "max_seqs": ("max_num_seqs", "max seqs"), "budget": ("token budget", "max_num_batched_tokens"),
         "block": ("KV block size", "block_size"), "blocks": ("KV blocks", "num_gpu_blocks"), "tokens": ("KV tokens",),
         "async": ("asynchronous scheduling", "async_scheduling"), "prefix": ("prefix caching", "enable_prefix_caching"),
         "chunked": ("chunked prefill", "enable_chunked_prefill"), "layers": ("layers", "num_hidden_layers"),
         "hidden": ("hidden size", "hidden_size"), "experts": ("experts", "num_experts", "num_local_experts", "n_routed_experts"),
         "top_k": ("top_k", "experts active for a token", "experts per token", "num_experts_per_tok")}


def plain(name):
    """--tensor-parallel-size, `tensor_parallel` and Tensor parallelism are one name."""
    return re.sub(r"[ _*`-]+", " ", name).strip().lower().removesuffix(" size").removesuffix("ism")


def settings(path, moe):
    table = {}
    for line in open(path):
        cell = [x.strip(" *`") for x in line.strip().strip("|").split("|")]
        # "layers, hidden size | 48, 2048" are two settings; "(...)" in a name says nothing more.
        keys = re.split(r",\s*", re.sub(r"\s*\(.*?\)", "", cell[0]))
        value = re.split(r",\s+", cell[1]) if len(cell) == 2 and len(keys) > 1 else cell[1:2]
        for key, text in zip(keys, value):
            table[plain(key)] = text
    table.setdefault("top k", table.get("active for a token"))

    def get(name):
        found = (table.get(plain(x)) for x in NAMES[name])
        return next((x for x in found if x), "")

    def number(name, otherwise):
        found = re.match(r"\d{1,3}(,\d{3})+(?!\d)|\d+", get(name))
        return found[0].replace(",", "") if found else otherwise

    word = lambda name: (re.findall(r"\w+", get(name).lower()) or [""])[0]
    block = number("block", "16")
    tokens = number("tokens", "")
    blocks = number("blocks", str(int(tokens) // int(block)) if tokens else "")
    parts = ["--hidden", number("hidden", "5120")]
    parts += ["--moe", moe, "--data-parallel", number("dp", "1")] if moe else []
    for option, name in ("--experts", "experts"), ("--top-k", "top_k"):
        parts += [option, number(name, "")] if moe and number(name, "") else []
    if moe and word("ep") not in ("", "no", "off", "false", "0", "1", "not"):
        parts.append("--expert-parallel")
    switch = {"async": "--no-async", "prefix": "--no-prefix-cache", "chunked": "--no-chunked-prefill"}
    return [
        "--layers", number("layers", "0"), "--sm-mhz", SM_MHZ, "--max-seqs", number("max_seqs", "256"),
        "--token-budget", number("budget", "2048"), "--tensor-parallel", number("tp", "1"), "--block-tokens", block,
        "--kv-blocks", str(int(blocks) - 1) if blocks else NEVER_SHORT,  # vLLM keeps one for itself
    ] + parts + [option for name, option in switch.items() if word(name) in ("off", "no", "false")]


TIMES = "t_ns", "prompt_tokens", "output_tokens", "queued_ns", "scheduled_ns", "first_token_ns", "last_token_ns"
COLUMNS = {"dense": ("layer", "tokens", "time_us"), "per_sequence": ("layer", "sequences", "time_us"),
           "attention": ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us"),
           "moe": ("tokens", "activated_experts", "time_us")}


def write(name, columns, table):
    """The columns that foldline reads: a run may record more, such as the rank of a request."""
    path = os.path.join(out, name)
    with open(path, "w") as file:
        columns = [c for c in columns if c in table[0]]
        file.write(",".join(columns) + "\n")
        file.writelines(",".join(row[c] for c in columns) + "\n" for row in table)
    return path


def requests_of(run):
    """Those of RUN.requests.csv; without it those of each rank, RUN.RANK.requests.csv, in the order of arrival."""
    if run + ".requests.csv" in found:
        return rows(found[run + ".requests.csv"])
    files = sorted(f for f in found if f.startswith(run + ".") and f.endswith(".requests.csv"))
    return sorted((row for f in files for row in rows(found[f])), key=lambda row: int(row["t_ns"]))


def request_file(run):
    """The run's requests with the tokens that each shares with an earlier one."""
    shared = {int(r["request"]): r["shared_tokens"] for r in rows(found[run + ".prefix.csv"])} if run + ".prefix.csv" in found else {}
    table = requests_of(run)
    for i, row in enumerate(table):
        row["cached_tokens"] = shared.get(i, row.get("cached_tokens") or "0")
    return write("requests.csv", TIMES + ("cached_tokens",), sorted(table, key=lambda row: int(row["t_ns"])))


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
    if not requests_of(name):
        print("        %s: its tables are here and its requests are not" % name)
        continue
    table = {kind: write(kind + ".csv", columns + ("sm_mhz", "power_w"), rows(found["%s.%s.csv" % (name, kind)]))
             for kind, columns in COLUMNS.items() if "%s.%s.csv" % (name, kind) in found}
    common = ["--dense", table["dense"], "--per-sequence", table["per_sequence"], "--attention", table["attention"],
              "--run", request_file(name)] + settings(found[name + ".engine.md"], table.get("moe"))
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
