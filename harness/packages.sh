# Debian packages that Foldline needs, and how to install those that are missing. Sourced, not run.
FL_BUILD_PACKAGES="gcc cmake make pkg-config libc6-dev libcsv-dev libgsl-dev libcjson-dev"
FL_BUILD_PACKAGES="$FL_BUILD_PACKAGES libyajl-dev libsqlite3-dev libexpat1-dev zlib1g-dev gnuplot-nox"
FL_TEST_PACKAGES="libcunit1-dev binutils slurmctld slurmd slurm-client munge chromium python3-jsonschema python3-pandas"
FL_FUZZ_PACKAGES="clang libclang-rt-dev" # tests/run.sh --fuzz

# fl_busy WHAT LOG COMMAND...: runs it, its output into LOG; where standard error is a terminal, a line there says what is
# done, and goes at the end. What cmake --build prints ("[ 34%]") is the share done.
fl_busy() {
  local what=$1 log=$2 start=$SECONDS job share left
  shift 2
  "$@" >"$log" 2>&1 &
  job=$!
  while [ -t 2 ] && sleep 0.5 && kill -0 $job 2>/dev/null; do
    share=$(grep -o '^\[ *[0-9]*%\]' "$log" | tail -n 1 | tr -cd 0-9) left=
    [ "${share:-0}" -gt 0 ] && left="$share %, about $(((SECONDS - start) * (100 - share) / share)) s left, "
    [ $((SECONDS - start)) -ge 1 ] && printf '\r%s: %s%s s\033[K' "$what" "$left" $((SECONDS - start)) >&2
  done
  [ ! -t 2 ] || printf '\r\033[K' >&2
  wait $job
}

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
  if ! fl_busy installing "$log" sh -c "$sudo apt-get update -q && DEBIAN_FRONTEND=noninteractive $sudo apt-get install \
    -q -y --no-install-recommends ${missing[*]}"; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}
