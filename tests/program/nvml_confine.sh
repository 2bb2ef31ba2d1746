#!/usr/bin/env bash
# Nothing gets out: decoys lie where a real driver's libraries and device nodes would, in a namespace of this test's own, and
# programs without the session's environment look for them. Where user namespaces are refused that is told, or refused.
. "$(dirname "$0")/shell.sh"

clients=$(dirname "$f")/clients
"$f" synth -o "$dir/w.csv" --kernels 200 --mean-us 3000 --seed 3 >/dev/null || exit 1
for bad in maybe "" needs; do
  refuse "--confine '$bad'" 2 "expected one of try, need, off|did you mean 'need'" "$f" emulate "$dir/w.csv" --platform generic --confine "$bad" -- true
done
if ! unshare -Urm sh -c 'mount -t tmpfs none /mnt' 2>/dev/null; then
  echo "skipped: no user namespaces here, so no decoys can be put into their places"
  finish
  exit
fi

# ---- the decoys, and a library folder of the linker's that holds them ----
cat >"$dir/decoy.c" <<'END'
const char *decoy(void);
const char *decoy(void) { return "a real library"; }
int nvmlInit_v2(void);
int nvmlInit_v2(void) { return 0; }
END
gcc -shared -fPIC -o "$dir/decoy.so" "$dir/decoy.c" || exit 1
cat >"$dir/stage.sh" <<END
set -e
mkdir -p "$dir/dev" "$dir/lib"
cp -a "$dir/decoy.so" "$dir/lib/libnvidia-ml.so.550.54"
cp -a "$dir/decoy.so" "$dir/lib/libcuda.so.1"
ln -s libnvidia-ml.so.550.54 "$dir/lib/libnvidia-ml.so.1"
mkdir -p "$dir/dev/dri" "$dir/dev/shm" "$dir/dev/pts"
for n in nvidia0 nvidia1 nvidiactl nvidia-uvm dri/card0 dri/renderD128; do echo "a real device" >"$dir/dev/\$n"; done
for n in null zero full random urandom tty; do touch "$dir/dev/\$n"; mount --bind /dev/\$n "$dir/dev/\$n"; done
mount --bind "$dir/lib" /usr/local/lib
mount --rbind "$dir/dev" /dev
export LD_LIBRARY_PATH=/usr/local/lib
exec "\$@"
END
stage() { unshare -Urm --propagation private bash "$dir/stage.sh" "$@"; }
again() { rm -rf "$dir/dev" "$dir/lib"; }
all=(/dev/nvidia0 /dev/nvidia1 /dev/nvidiactl /dev/nvidia-uvm /dev/dri/card0 /dev/dri/renderD128 /usr/local/lib/libnvidia-ml.so.1
  /usr/local/lib/libnvidia-ml.so.550.54 /usr/local/lib/libcuda.so.1)
emulate=("$f" emulate "$dir/w.csv" --platform generic --quiet)

again
succeed "without the emulator the decoys are found" '^found 11$' stage "$clients/seek" "${all[@]}"
check "libraries too" grep -qx 'loaded libcuda.so.1: a real library' "$dir/out"
again
succeed "in a session none is" '^found 0$' stage "${emulate[@]}" -- "$clients/seek" "${all[@]}"
check "but the simulated library" grep -qx 'simulated libnvidia-ml.so.1' "$dir/out"
again
succeed "env -i finds none" '^found 0$' stage "${emulate[@]}" -- env -i "$clients/seek" "${all[@]}"
again
succeed "with the linker's path of before neither" '^found 0$' stage "${emulate[@]}" -- env -i LD_LIBRARY_PATH=/usr/local/lib "$clients/seek" "${all[@]}"
again
succeed "a static program finds none" '^found 0$' stage "${emulate[@]}" -- "$clients/seek_static" "${all[@]}"
again
cp "$clients/seek" "$dir/seek" && chmod 4755 "$dir/seek"
succeed "a setuid copy finds none" '^found 0$' stage "${emulate[@]}" -- "$dir/seek" "${all[@]}"
again
succeed "nor in namespaces of its own" '^found 0$' stage "${emulate[@]}" -- unshare -Urm "$clients/seek_static" "${all[@]}"
again
stage "${emulate[@]}" -- unshare -Urm sh -c "umount /dev/nvidia0 /dev/dri; exec $clients/seek_static ${all[*]}" >"$dir/out" 2>&1
check "where the covers cannot be taken off" grep -qx 'found 0' "$dir/out"
again
succeed "in virtual time too" '^found 0$' stage "${emulate[@]}" --time virtual -- "$clients/seek" "${all[@]}"
again
succeed "with a driver's version too" '^simulated libnvidia-ml.so.1$' stage "${emulate[@]}" --driver 535 -- "$clients/seek" "${all[@]}"
check "and none real" grep -qx 'found 0' "$dir/out"
again
succeed "--confine need, where it works" '^found 0$' stage "${emulate[@]}" --confine need -- env -i "$clients/seek" "${all[@]}"
again
succeed "--confine off: what env -i finds then" '^found 9$' stage "${emulate[@]}" --confine off -- env -i "$clients/seek" "${all[@]}"
check "says nothing" test ! -s "$dir/err"
check "the session still finds the simulated one" grep -qx 'simulated libnvidia-ml.so.1' <(again; stage "${emulate[@]}" --confine off -- "$clients/seek")
again
succeed "other ids go on working" '^0:0$' stage "${emulate[@]}" -- sh -c 'echo $(id -u):$(id -g)'
again
succeed "sets are made" '^lock 0$' stage "${emulate[@]}" --privileged -- "$clients/probe" lock 0 900 900

again
succeed "where ends of children are ignored" '^found 0$' stage sh -c 'trap "" CHLD; exec "$@"' sh "${emulate[@]}" --confine need -- env -i "$clients/seek" "${all[@]}"

# ---- where namespaces are refused ----
refused=(sh -c 'echo 0 >/proc/sys/user/max_user_namespaces; echo 0 >/proc/sys/user/max_mnt_namespaces; exec "$@"' sh)
again
stage "${refused[@]}" "${emulate[@]}" -- sh -c "echo starts >&2; exec env -i $clients/seek_static ${all[*]}" >"$dir/out" 2>"$dir/err"
check "refused: it is said before the program starts" sed -n '1{/note: no user namespace: .*find the real driver of this machine, for example \/.*$/!q1}; 2{/^starts$/!q1}' "$dir/err"
check "and said once" test "$(wc -l <"$dir/err")" = 2
check "it is true" grep -qx 'found 9' "$dir/out"
again
refuse "refused: --confine need does not start" 3 'no user namespace: .*find the real driver' stage "${refused[@]}" "${emulate[@]}" --confine need -- "$clients/seek_static"
again
succeed "refused: off is silent" '^found' stage "${refused[@]}" "${emulate[@]}" --confine off -- "$clients/seek_static"
check "indeed" test ! -s "$dir/err"
# without anything of a driver there is nothing to cover, and nothing to say
succeed "no driver: nothing is said" '^found 0$' unshare -Urm "${refused[@]}" "${emulate[@]}" -- "$clients/seek_static"
check "of namespaces" test ! -s "$dir/err"
again
check "nothing is left of the sessions" test -z "$(find /tmp -maxdepth 2 -path '/tmp/foldline-*/covered' -newer "$dir/w.csv" 2>/dev/null)"

finish
