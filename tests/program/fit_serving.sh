#!/usr/bin/env bash
# Fitting a server's batch steps, as a user does it: layer tables, a step table over clocks, a measured run, and files that are wrong.
. "$(dirname "$0")/shell.sh"

base=traces/samples/serving/rtx4090-llama3.1-8b
layers() { "$f" fit serving --dense $base.dense.csv --per-sequence $base.per_sequence.csv --attention $base.attention.csv "$@"; }
succeed "layer tables" 'clocks were not measured: compute is assumed' layers --layers 32 --sm-mhz 2520 --max-model-len 32768 --kv-blocks 2587
succeed "say how well they foretell batches" 'decode batches left out: time +[0-4]\.[0-9]+ % mean' layers --layers 32 --sm-mhz 2520 --kv-blocks 2587
traces/samples/serving/make.sh "$f" "$dir/made.csv" >/dev/null
check "the sample is what its script makes" cmp -s "$dir/made.csv" $base.serving.csv
succeed "two GPUs meet twice a block" '64 a step, 100\.0 us \+ 0\.400 us' layers --layers 32 --sm-mhz 2520 --tensor-parallel 2
succeed "four move 3/2 as many bytes, of half the hidden size half" '64 a step, 100\.0 us \+ 0\.300 us' layers --layers 32 --sm-mhz 2520 \
  --tensor-parallel 4 --hidden 2560
succeed "or as stated" '64 a step, 20\.0 us' layers --layers 32 --sm-mhz 2520 --tensor-parallel 2 --all-reduce-us 20
refuse "without its blocks" 2 'expected --layers N' layers --sm-mhz 2520
refuse "without its clock" 2 'expected --sm-mhz MHZ' layers --layers 32
refuse "one table of three" 2 'come in threes' "$f" fit serving --dense $base.dense.csv --layers 32 --sm-mhz 2520
refuse "nothing to fit to" 2 'expected one of: layer tables' "$f" fit serving
refuse "two at once" 2 'expected one of: layer tables' layers $base.serving.csv
grep -v '^down_proj' $base.dense.csv >"$dir/dense.csv"
refuse "a layer is missing" 2 "no layer 'down_proj'" layers --layers 32 --sm-mhz 2520 --dense "$dir/dense.csv"
awk -F, 'NR == 1 || $2 <= 64' $base.dense.csv >"$dir/short.csv"
beyond='steps of more than 64 tokens were not measured, and the budget allows 2048'
succeed "a table that ends below the budget" "$beyond" layers --layers 32 --sm-mhz 2520 --kv-blocks 2587 --dense "$dir/short.csv" -o "$dir/short.serving.csv"
printf '# foldline-requests 1\nt_ns,prompt_tokens,output_tokens\n0,100,2\n' >"$dir/few.csv"
succeed "every result says so" "^note: short.serving.csv: .*$beyond" "$f" run "$dir/short.serving.csv" "$dir/few.csv" \
  --platform a100 --policy nvboost
succeed "not where no step is so long" '^TTFT' "$f" run "$dir/short.serving.csv" "$dir/few.csv" --platform a100 \
  --policy nvboost --token-budget 64
check "it is silent then" bash -c "! grep -q 'were not measured, and the budget' '$dir/out'"
sed 's/time_us/time_ms/' $base.attention.csv >"$dir/attention.csv"
refuse "a column is missing" 2 "attention\.csv:1:[0-9]+: .*'?time_ms'?" layers --layers 32 --sm-mhz 2520 --attention "$dir/attention.csv"
sed '5s/,[^,]*$/,soon/' $base.attention.csv >"$dir/attention.csv"
refuse "a broken row" 2 'attention\.csv:5:[0-9]+: time_us' layers --layers 32 --sm-mhz 2520 --attention "$dir/attention.csv"
refuse "nothing that the server runs" 2 'that this server can run' layers --layers 32 --sm-mhz 2520 --token-budget 8

# A mixture of experts whose table is made of 20 us + |0.2 us a token, 6 us an expert| with sharpness 2; those of the fewest
# experts, which a repeated block finds in its cache, take a third of it.
python3 - "$dir/moe.csv" <<'END'
import sys
with open(sys.argv[1], "w") as out:
    out.write("tokens,activated_experts,time_us\n")
    for n in 1, 4, 16, 64, 256, 1024:
        for e in 4, 16, 32, 64:
            if e <= 4 * n:
                out.write("%d,%d,%.6g\n" % (n, e, (20 + ((0.2 * n) ** 2 + (6 * e) ** 2) ** 0.5) / (3 if e == 4 else 1)))
END
moe() { layers --layers 10 --sm-mhz 2000 --dense "$dir/dense.csv" --moe "$dir/moe.csv" --max-model-len 32768 --kv-blocks 2587 "$@"; }
succeed "experts" '^assumed: even routing to experts.* 1 to 2 is possible' moe
succeed "are found again" '^experts: 64, 4 for a token, on 1 ranks in 1 slices; (199|200)\.[0-9] us \+ .2\.00[0-9] us a token, (59\.99|60\.0[0-9]) us an expert. .* sharpness (1\.99|2\.00)' moe
succeed "on the GPUs of two replicas" 'on 4 ranks in 1 slices' moe --tensor-parallel 2 --data-parallel 2 --expert-parallel --hidden 2560 -o "$dir/moe.serving.csv"
succeed "that exchange tokens" 'exchanges of 2 replicas: 20 a step, 50\.0 us \+ 0\.100 us a token' "$f" fit serving "$dir/moe.serving.csv"
succeed "and step together" '^asked +4 GPUs, 1 request.*2 servers' "$f" run "$dir/moe.serving.csv" "$dir/few.csv" --platform a100 --policy nvboost
succeed "which the first line says" 'on a100; assumed: even routing' "$f" run "$dir/moe.serving.csv" "$dir/few.csv" --platform a100 --policy nvboost
check "joules per token have a range over routing, and over clocks" grep -qE \
  'few.csv under .*; exchanges among replicas take [0-9.]+ and [0-9.]+ % of the time; joules per token: [0-9.]+ and [0-9.]+ times\); .*; joules per token: [0-9.]+ times; [0-9.]+ to [0-9.]+ is possible\)$' "$dir/out"
succeed "in slices" 'on 1 ranks in 2 slices' moe --data-parallel 2
refuse "more GPUs than experts" 2 '64 experts on 128 GPUs' moe --data-parallel 128
refuse "replicas without a table" 2 'expected --moe FILE' layers --layers 32 --sm-mhz 2520 --data-parallel 2
(cat "$dir/moe.csv"; echo 4,16,1) >"$dir/twice.csv"
refuse "one row twice" 2 'two rows of 4 tokens and 16 experts' moe --moe "$dir/twice.csv"

# A run of experts that the law itself made: calibrated with half of it, the other half comes out right, with the routing of the law.
"$f" synth requests -o "$dir/drawn.csv" --requests 100 --rate 20 --output-tokens 40 >/dev/null
moe --sm-mhz 1410 --data-parallel 2 -o "$dir/own.serving.csv" >/dev/null
"$f" run "$dir/own.serving.csv" "$dir/drawn.csv" --platform a100 --route least-loaded --policy nvboost --served "$dir/served.csv" >/dev/null
awk -F, 'NR == 1 { print "t_ns,prompt_tokens,output_tokens,first_token_ns,last_token_ns"; next } { print $3 "," $7 "," $8 "," $5 "," $6 }' \
  "$dir/served.csv" >"$dir/own.csv"
"$f" fit serving "$dir/own.serving.csv" --run "$dir/own.csv" --calibrate half --json >"$dir/own.json"
check "the half that calibration did not see" python3 -c "import json, sys
run = json.load(open(sys.argv[1]))
sys.exit(max(abs(x['error_pct']) for x in run['unseen'].values()) > 0.5 or max(abs(run[f] - 1) for f in run if f.startswith('factor')) > 0.02)" "$dir/own.json"

# The same run as a folder for tests/serving.sh, with the settings by short names, a file of requests for each rank, and a column more.
mkdir -p "$dir/data/serving/tables"
cp $base.per_sequence.csv "$dir/data/serving/tables/mine.per_sequence.csv" && cp $base.attention.csv "$dir/data/serving/tables/mine.attention.csv"
cp "$dir/dense.csv" "$dir/data/serving/tables/mine.dense.csv" && cp "$dir/moe.csv" "$dir/data/serving/tables/mine.moe.csv"
printf '| %s | %s |\n' setting value '`--tensor-parallel-size`' '`1`' 'Data parallelism' '**2** (vLLM ranks)' ep no max_num_seqs '256 for each rank' 'KV blocks' 2,588 'num_hidden_layers' 10 \
  top_k 4 num_experts 64 >"$dir/data/serving/mine.engine.md"
awk -F, -v d="$dir/data/serving/mine" 'NR == 1 { print $0 ",rank" >(d ".r0.requests.csv"); print $0 ",rank" >(d ".r1.requests.csv"); next }
  { print $0 "," NR % 2 >(d ".r" NR % 2 ".requests.csv") }' "$dir/own.csv"
FOLDLINE_DATA="$dir/data" tests/serving.sh "$f" >"$dir/judged" 2>&1
check "a run of ranks is judged" grep -q '^ok .*mine, layer tables alone: tpot_p50 ' "$dir/judged"
check "and comes out as it was made" bash -c "grep -q 'every goal is met' '$dir/judged' && grep -q 'factors [01]\.[09][0-9]*, ' '$dir/judged'"

# Layer tables of four clocks, whose kernels are made of another law than the one that is fitted: each has a launch of its own, and overlaps by itself.
mkdir "$dir/clocks"
python3 - "$dir/clocks" <<'END'
import random, sys
draw = random.Random(52)
open_ = {name: open("%s/%s.csv" % (sys.argv[1], name), "w") for name in ("dense", "per_sequence", "attention")}
open_["dense"].write("layer,tokens,time_us,sm_mhz,power_w\n")
open_["per_sequence"].write("layer,sequences,time_us,sm_mhz,power_w\n")
open_["attention"].write("prefill_chunk,kv_prefill,n_decode,kv_decode,time_us,sm_mhz,power_w\n")
def row(file, key, compute, memory, mhz):
    """2 us of launch, then compute and memory with sharpness 2; a quarter of the memory's time follows the clock."""
    f = mhz / 2000
    c, m = compute / f, memory * (0.75 + 0.25 / f)
    body = (c * c + m * m) ** 0.5
    time = 2 + body
    power = 60 + mhz / 1000 * (1 + 0.5 * max(0, f - 0.6)) ** 2 * (15 + 60 * min(1, c / time)) + 70 * min(1, m / time)
    noise = [1 + 0.02 * draw.gauss(0, 1) for _ in range(2)]
    open_[file].write("%s,%.6g,%g,%.6g\n" % (key, time * noise[0], mhz, power * noise[1]))
for mhz in 1000, 1400, 1700, 2000:
    for layer, a, w in ("layernorm", 0.01, 0.5), ("qkv_proj", 0.3, 40), ("o_proj", 0.2, 30), ("gate_up_proj", 1.0, 150), ("down_proj", 0.5, 80):
        for n in 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048:
            row("dense", "%s,%d" % (layer, n), a * n, w, mhz)
    for layer, a, w in ("lm_head", 2.0, 600), ("sampler", 1.0, 10):
        for n in 1, 4, 16, 64, 256:
            row("per_sequence", "%s,%d" % (layer, n), a * n, w, mhz)
    for chunk in 0, 16, 128, 1024:
        for before in (0, 1024, 4096) if chunk else (0,):
            for decodes in 0, 1, 4, 16, 64, 128:
                for kv in (64, 512, 4096) if decodes else (0,):
                    if chunk or decodes:
                        row("attention", "%d,%d,%d,%d" % (chunk, before, decodes, kv),
                            1e-5 * chunk * (before + chunk / 2) + 0.2 * decodes, 2e-3 * (before + chunk + decodes * kv), mhz)
END
clocks() { "$f" fit serving --dense "$dir/clocks/dense.csv" --per-sequence "$dir/clocks/per_sequence.csv" --attention "$dir/clocks/attention.csv" --layers 32 --kv-blocks 99999 "$@"; }
succeed "layer tables over clocks" '^clocks were measured on: 1000, 1400, 1700, 2000 MHz' clocks --platform-out "$dir/clocks.json" -o "$dir/clocks.serving.csv"
check "nothing is assumed" bash -c "! grep -q '^assumed' '$dir/out'"
check "each clock is left out in turn" grep -q '^1000 MHz left out, an end' "$dir/out"
check "the platform has them" bash -c "tr -d ' \n\t' <'$dir/clocks.json' | grep -q '\"sm_mhz\":\[1000,.*1400,.*1700,.*2000\]'"
check "a quarter of the weights' time follows the clock, less the launches and the noise" awk -F, '$1 == "weights_clock" { w = $4 / 2 } $1 == "by_tokens" && $2 == 1 { share = w / $4 }
  END { exit !(share > 0.15 && share < 0.3) }' "$dir/clocks.serving.csv"
errors() { clocks "${@:4}" --json | python3 -c "import json, sys
print(max(c['$1']['mean_pct'] for c in json.load(sys.stdin)['left_out_clocks'] if $2) < $3)"; }
check "time of each clock within 3 %" test "$(errors time True 3)" = True
check "power of inner clocks within 3 %" test "$(errors power "not c['end']" 3)" = True
only() { for table in dense per_sequence attention; do awk -F, "NR == 1 || $1" "$dir/clocks/$table.csv" >"$dir/$table.csv"; done; }
of() { "$f" fit serving --dense "$dir/dense.csv" --per-sequence "$dir/per_sequence.csv" --attention "$dir/attention.csv" --layers 32 --kv-blocks 99999 "$@"; }
only '$(NF - 1) == 2000'
succeed "one clock of them says what is assumed" '^assumed: times at other clocks' of -o "$dir/one.serving.csv"
succeed "first in a comparison too" '^assumed: times at other clocks' "$f" compare "$dir/one.serving.csv" "$dir/few.csv" --platform a100 --policy nvboost
succeed "where clocks were measured it does not" 'baseline:default' "$f" compare "$dir/clocks.serving.csv" "$dir/few.csv" --platform a100 --policy nvboost
check "in no line" bash -c "! grep -q 'assumed: times' '$dir/out'"
refuse "no powers over clocks, no platform" 2 'expected tables with them' of --platform-out "$dir/none.json"
only '$(NF - 1) > 1500'
succeed "two clocks" 'clocks were measured on: 1700, 2000 MHz' of
check "of which none can be left out" bash -c "! grep -q 'left out,\|MHz left out' '$dir/out'"
awk -F, 'NR == 1 || $4 == 2000' "$dir/clocks/per_sequence.csv" >"$dir/per_sequence.csv"
refuse "a table lacks a clock" 2 "no layer 'lm_head' among those by sequences at 1700 MHz" of
succeed "experts of one clock" '^assumed: even routing.* times of experts at other clocks' clocks --moe "$dir/moe.csv"
# Experts over the same clocks: 20 us + |0.2 us a token, 6 us an expert|, of which a quarter follows the clock; they load the chip by 0.6 of what
# other products do. The fewest experts, which a repeated block finds in its cache, take a third.
python3 - "$dir/clocks/moe.csv" <<'END'
import random, sys
draw = random.Random(53)
with open(sys.argv[1], "w") as out:
    out.write("tokens,activated_experts,time_us,sm_mhz,power_w\n")
    for mhz in 1000, 1400, 1700, 2000:
        f = mhz / 2000
        for n in 1, 4, 16, 64, 256, 1024:
            for e in 4, 16, 32, 64:
                if e <= 4 * n:
                    c, m = 0.2 * n / f, 6 * e * (0.75 + 0.25 / f)
                    time = 20 + (c * c + m * m) ** 0.5
                    power = 60 + mhz / 1000 * (1 + 0.5 * max(0, f - 0.6)) ** 2 * (15 + 0.6 * 60 * c / time) + 0.6 * 70 * m / time
                    out.write("%d,%d,%.6g,%d,%.6g\n" % (n, e, time * (1 + 0.02 * draw.gauss(0, 1)) / (3 if e == 4 else 1), mhz, power * (1 + 0.02 * draw.gauss(0, 1))))
END
succeed "experts over clocks" '^assumed: even routing to experts .with Zipf' clocks --moe "$dir/clocks/moe.csv" -o "$dir/both.serving.csv"
check "nothing else is assumed" bash -c "! grep -q 'power of experts\|times of experts' '$dir/out'"
check "what follows the clock, and their load" awk -F, '{ x[$1] = $4 } END { share = x["expert_clock"] / (x["expert_clock"] + 2 * x["expert_s"])
  exit !(share > 0.2 && share < 0.3 && x["expert_load"] > 0.45 && x["expert_load"] < 0.75) }' "$dir/both.serving.csv"
check "time of each clock within 3 %, with experts" test "$(errors time True 3 --moe "$dir/clocks/moe.csv")" = True
check "power of inner clocks within 4 %, with experts" test "$(errors power "not c['end']" 4 --moe "$dir/clocks/moe.csv")" = True
cut -d, -f1-4 "$dir/clocks/moe.csv" >"$dir/moe.csv"
succeed "without powers their load is assumed" '^assumed: even routing to experts, power of experts as of dense products' clocks --moe "$dir/moe.csv"
awk -F, 'NR == 1 || $4 != 2000' "$dir/clocks/moe.csv" >"$dir/fewer.csv"
refuse "experts lack a clock" 2 'no rows of experts at 2000 MHz' clocks --moe "$dir/fewer.csv"
(cat "$dir/moe.csv"; sed -n 5p "$dir/moe.csv") >"$dir/twice.csv"
refuse "one row twice at a clock" 2 'two rows of 16 tokens and 4 experts' clocks --moe "$dir/twice.csv"

# A step table made of a law by hand: 1 ms + 0.3 ms a token at 1 GHz + 15 ms of weights; 50 W + 40 W/GHz + memory's share of 30 W.
python3 - "$dir/steps.csv" <<'END'
import sys
tiles = lambda n: max(1, 1 << (n - 1).bit_length()) if n <= 128 else -(-n // 128) * 128
with open(sys.argv[1], "w") as out:
    out.write("phase,sm_mhz,batch,tokens,context_tokens,time_s,power_w\n")
    for mhz in 800, 1200, 1600, 2000:
        rows = [("prefill", 1, n, 0) for n in (100, 400, 1000, 2000, 4000)]
        rows += [("decode", b, b, c) for b in (1, 8, 32, 100) for c in (200, 1000, 3000)]
        for phase, batch, tokens, context in rows:
            chunks = [min(2048, tokens - k) for k in range(0, tokens, 2048)]
            compute = sum(3e-4 * tiles(n) for n in chunks) / (mhz / 1000)
            memory = 15e-3 * len(chunks) + (6e-8 * batch * context if phase == "decode" else 0)
            time = 1e-3 * len(chunks) + (compute ** 2 + memory ** 2) ** 0.5
            power = 50 + 40 * mhz / 1000 * (1 + compute / time) + 30 * min(1, memory / time)
            out.write("%s,%d,%d,%d,%d,%.9f,%.4f\n" % (phase, mhz, batch, tokens, context, time, power))
END
succeed "steps over clocks" 'clocks were measured on: 800, 1200, 1600, 2000 MHz' "$f" fit serving --steps "$dir/steps.csv"
succeed "each clock is left out in turn" '1200 MHz left out  ' "$f" fit serving --steps "$dir/steps.csv"
unwritten "a platform that cannot be written" '1200 MHz left out  ' "$f" fit serving --steps "$dir/steps.csv" --platform-out "$dir/nowhere/chip.json"
succeed "the ends too" '2000 MHz left out, an end' "$f" fit serving --steps "$dir/steps.csv" -o "$dir/steps.serving.csv" --platform-out "$dir/chip.json"
error() { "$f" fit serving --steps "$dir/steps.csv" --json | python3 -c "import json, sys
print(max(c['$1']['mean_pct'] for c in json.load(sys.stdin)['left_out_clocks'] if not c['end']) < $2)"; }
check "time of inner clocks within 3 %" test "$(error time 3)" = True
check "power within 3 %" test "$(error power 3)" = True
succeed "the platform is one" 'sm_mhz' "$f" list platforms "$dir/chip.json"
succeed "one clock is left out" 'clocks were measured on: 800, 1200, 2000 MHz' "$f" fit serving --steps "$dir/steps.csv" --leave-out 1600
refuse "a clock that there is not" 2 'the table has no such clock' "$f" fit serving --steps "$dir/steps.csv" --leave-out 1601
grep -v '^decode' "$dir/steps.csv" >"$dir/half.csv"
refuse "one phase of two" 2 'no decode row' "$f" fit serving --steps "$dir/half.csv"
cut -d, -f1-6 "$dir/steps.csv" >"$dir/times.csv"
succeed "times alone" 'clocks were measured on' "$f" fit serving --steps "$dir/times.csv"
refuse "make no platform" 2 'too few powers for a platform' "$f" fit serving --steps "$dir/times.csv" --platform-out "$dir/no.json"
check "and leave none" test ! -e "$dir/no.json"

# A run: what the sample's server itself would do, with every time 10 % longer.
{
  echo '# foldline-requests 1'
  echo t_ns,prompt_tokens,output_tokens,queued_ns,scheduled_ns,first_token_ns,last_token_ns
  for i in {0..19}; do echo "$((i * 300000000)),$((200 + 30 * i)),$((40 + i)),,,$((i * 300000000 + 90000000)),$((i * 300000000 + 1000000000))"; done
} >"$dir/run.csv"
run() { "$f" fit serving $base.serving.csv --run "$dir/run.csv" "$@"; }
succeed "a run beside its simulation" 'TPOT p50 ' run
succeed "calibrated with half of it" "the law's times were multiplied by" run --calibrate half -o "$dir/calibrated.csv"
check "which its file says" grep -qx '# calibrated: with half of a run' "$dir/calibrated.csv"
refuse "in another way" 2 "no --calibrate 'quarter', expected one of none" run --calibrate quarter
cut -d, -f1-3 "$dir/run.csv" >"$dir/arrivals.csv"
refuse "without times" 2 'expected columns first_token_ns and last_token_ns' "$f" fit serving $base.serving.csv --run "$dir/arrivals.csv"
sed 's/^# kv_blocks.*/# kv_blocks: 0/' $base.serving.csv >"$dir/unknown.csv"
refuse "a cache of unknown size" 2 'expected .# kv_blocks: N. or --kv-blocks N' "$f" fit serving "$dir/unknown.csv" --run "$dir/run.csv"
succeed "unless it is stated" 'TPOT p50 ' "$f" fit serving "$dir/unknown.csv" --run "$dir/run.csv" --kv-blocks 500
finish
