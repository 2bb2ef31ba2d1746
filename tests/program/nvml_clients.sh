#!/usr/bin/env bash
# NVML clients that others wrote, each in wall time and in virtual time. This installs nothing: what is not on the machine
# is named as skipped. Debian has PCP's agent (pcp) and the Rust crate (librust-nvml-wrapper-dev) in main; nvtop, gpustat,
# python3-pynvml, libhwloc-contrib-plugins and Slurm's plug-in (slurm-wlm-nvml-plugin) in contrib.
. "$(dirname "$0")/shell.sh"

"$f" synth -o "$dir/w.csv" --kernels 2000 --mean-us 3000 --seed 3 >/dev/null || exit 1
times=(wall virtual)
# client NAME PATTERN COMMAND...: succeeds on a simulated GPU with output that matches, in each of the times.
client() {
  local name=$1 pattern=$2 time
  shift 2
  for time in "${times[@]}"; do
    succeed "$name, $time time" "$pattern" timeout 120 "$f" emulate "$dir/w.csv" --platform generic --privileged --quiet --heat \
      --time "$time" -- "$@"
  done
}
absent() { echo "skipped: $1"; }
here() { command -v "$1" >/dev/null; }
plugin() { find /usr/lib /usr/local/lib -path "*/$1" 2>/dev/null | head -n 1; }

# ---- PCP: every metric is read. One is an error, as with the driver's library: the agent calls nvmlDeviceGetFanSpeed_v2
# with the arguments of the first.
pcp=/var/lib/pcp/pmdas/nvidia
if here pminfo && [ -r $pcp/pmda_nvidia.so ] && [ -r $pcp/pmns ]; then
  { echo 'root { nvidia }'; sed 's/NVML:/120:/' $pcp/pmns; } >"$dir/names"
  for time in "${times[@]}"; do
    times=("$time")
    client "PCP's agent" 'value "Generic"' pminfo -n "$dir/names" -L -K clear -K "add,120,$pcp/pmda_nvidia.so,nvidia_init" -f nvidia
    check "its metrics" test "$(grep -c '^nvidia\.' "$dir/out")" -gt 40
    check "all but one have values" test "$(grep -B 1 '^Error' "$dir/out" | grep -v '^--' | head -n 3 | cut -d : -f 1 | tr '\n' ' ')" = "nvidia.fanspeed Error "
  done
  times=(wall virtual)
else
  absent "PCP's NVIDIA agent is not here (package pcp)"
fi

# ---- Rust: the crate's own example of basic use. Its one call of another crate, which words a number, is replaced.
crates=/usr/share/cargo/registry
crate=$(ls -d $crates/nvml-wrapper-[0-9]* 2>/dev/null | head -n 1)
if [ -n "$crate" ] && [ -x /usr/bin/cargo ]; then
  mkdir -p "$dir/rust/src" "$dir/rust/.cargo"
  printf '[package]\nname = "basic"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\nnvml-wrapper = "%s"\n' "${crate##*-}" >"$dir/rust/Cargo.toml"
  printf '[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "%s"\n' $crates >"$dir/rust/.cargo/config.toml"
  sed -e '/pretty_bytes/d' -e 's/convert(\([^)]*\) as _)/\1/' "$crate/examples/basic_usage.rs" >"$dir/rust/src/main.rs"
  check "Rust's nvml-wrapper builds" env -C "$dir/rust" PATH=/usr/bin:/bin CARGO_HOME="$dir/cargo" RUSTC=/usr/bin/rustc cargo build --offline --quiet
  client "Rust's nvml-wrapper" '^Your Generic .* is currently sitting at [0-9]+ ' "$dir/rust/target/debug/basic"
else
  absent "Rust's nvml-wrapper is not here (packages librust-nvml-wrapper-dev, cargo)"
fi

# ---- libraries that look for NVML by themselves ----
if here papi_component_avail && papi_component_avail 2>/dev/null | grep -q '^Name: *nvml '; then
  client "PAPI" '^ *\| *nvml:::Generic.*:power' papi_native_avail -i nvml
else
  absent "PAPI is not here with its component nvml (Debian builds papi-tools without)"
fi
if here lstopo-no-graphics && [ -n "$(plugin 'hwloc/hwloc_nvml.so')" ]; then
  client "hwloc" '"nvml0"' lstopo-no-graphics --of console -v
else
  absent "hwloc is not here with its plug-in for NVML (packages hwloc, libhwloc-contrib-plugins)"
fi
if here slurmd && [ -n "$(plugin '*/gpu_nvml.so')" ]; then
  printf 'ClusterName=c\nSlurmctldHost=%s\nGresTypes=gpu\nNodeName=%s Gres=gpu:1\n' "$(hostname -s)" "$(hostname -s)" >"$dir/slurm.conf"
  echo AutoDetect=nvml >"$dir/gres.conf"
  for time in "${times[@]}"; do
    timeout 120 "$f" emulate "$dir/w.csv" --platform generic --quiet --time "$time" -- slurmd -G -f "$dir/slurm.conf" >"$dir/out" 2>&1
    check "Slurm's plug-in, $time time" grep -qi 'gpu.*generic' "$dir/out"
  done
else
  absent "Slurm's plug-in for NVML is not here (package slurm-wlm-nvml-plugin)"
fi

# ---- programs for people ----
if here nvtop && here script; then
  check "nvtop, wall time" bash -c "TERM=xterm timeout 60 '$f' emulate '$dir/w.csv' --platform generic --quiet -- timeout 3 script -qec nvtop /dev/null </dev/null | grep -q Generic"
else
  absent "nvtop is not here (package nvtop)"
fi
if here gpustat; then
  client "gpustat" 'Generic' gpustat --no-color
else
  absent "gpustat is not here (package gpustat)"
fi
if here nvitop; then
  client "nvitop" 'Generic' nvitop --once
else
  absent "nvitop is not here"
fi

# ---- Python and Go ----
has() { here python3 && python3 -c "import $1" 2>/dev/null; }
if has pynvml; then
  cat >"$dir/watch.py" <<'END'
import pynvml, time
pynvml.nvmlInit()
gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
before = pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)
time.sleep(1)
print(pynvml.nvmlDeviceGetName(gpu), pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu) > before)
END
  client "pynvml" 'Generic.* True$' python3 "$dir/watch.py"
else
  absent "pynvml is not here (package python3-pynvml)"
fi
if has kernel_tuner.observers.nvml; then
  cat >"$dir/observe.py" <<'END'
import time
from kernel_tuner.observers.nvml import NVMLObserver
observer = NVMLObserver(["nvml_energy", "core_freq", "temperature"])
class Device: pass
observer.register_device(Device())
observer.before_start(); observer.after_start()
for _ in range(5):
    time.sleep(0.1)
    observer.during()
observer.after_finish()
print("observed", observer.get_results())
END
  client "Kernel Tuner's observer" '^observed .*core_freq' python3 "$dir/observe.py"
else
  absent "Kernel Tuner is not here"
fi
module=$(ls -d "$(go env GOMODCACHE 2>/dev/null)"/github.com/'!n!v!i!d!i!a'/go-nvml@* 2>/dev/null | tail -n 1)
if [ -n "$module" ]; then
  for example in devices compute-processes; do
    check "go-nvml's example $example builds" env -C "$module/examples/$example" GOFLAGS=-mod=mod GOPROXY=off go build -o "$dir/$example" .
    times=(wall)
    client "go-nvml's example $example" '.' "$dir/$example"
  done
else
  absent "go-nvml is not here (no Go module of it in the cache)"
fi
finish
