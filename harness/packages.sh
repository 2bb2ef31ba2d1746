# Debian packages that Foldline needs, and how to install those that are missing. Sourced, not run.
FL_BUILD_PACKAGES="gcc cmake make pkg-config libc6-dev libcsv-dev libgsl-dev libcjson-dev libmd-dev"
FL_BUILD_PACKAGES="$FL_BUILD_PACKAGES libyajl-dev libsqlite3-dev zlib1g-dev gnuplot-nox"
FL_TEST_PACKAGES="libcunit1-dev binutils slurmctld slurmd slurm-client munge chromium python3-jsonschema python3-pandas"
FL_FUZZ_PACKAGES="clang libclang-rt-dev" # tests/run.sh --fuzz

fl_install() {
  local missing=() p log
  for p in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
  done
  [ ${#missing[@]} = 0 ] && return 0
  local sudo=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "missing packages: ${missing[*]}; install them as root" >&2; return 1; }
    sudo=sudo
  fi
  echo "installing: ${missing[*]}"
  log=$(mktemp)
  if ! { $sudo apt-get update -q && DEBIAN_FRONTEND=noninteractive $sudo apt-get install -q -y --no-install-recommends \
    "${missing[@]}"; } >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}
