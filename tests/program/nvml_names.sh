#!/usr/bin/env bash
# The simulated driver's library as a whole: every name of NVML is exported and checks its arguments, drivers of other
# versions, events, memory power, temperature without heat.
. "$(dirname "$0")/shell.sh"

build=$(dirname "$f") clients=$(dirname "$f")/clients
"$f" synth -o "$dir/w.csv" --kernels 2000 --mean-us 3000 --seed 3 >/dev/null || exit 1
emulate=("$f" emulate "$dir/w.csv" --quiet --privileged)
virtual=("${emulate[@]}" --platform generic --time virtual)

# ---- the names ----
sed -n 's/^FL_[A-Z]*(\(nvml[A-Za-z0-9_]*\),.*/\1/p' harness/emulate/client/nvml_names.inc | sort >"$dir/names"
nm -D --defined-only "$build/emulated/libnvidia-ml.so.1" | awk '$3 ~ /^nvml/ { print $3 }' | sort >"$dir/exported"
check "the library exports the names of the list, and no other" diff "$dir/names" "$dir/exported"
check "all 412 of them" test "$(wc -l <"$dir/names")" = 412
check "each once" test -z "$(uniq -d "$dir/names")"
for name in nvmlDeviceGetAddressingMode nvmlEventSetCreate nvmlDeviceGetAutoBoostedClocksEnabled nvmlDeviceGetDetailedEccErrors nvmlDeviceGetInforomVersion; do
  check "$name" grep -qx $name "$dir/exported"
done
succeed "each answers by its arguments" '^412 names, [0-9]{4} calls, 0 wrong$' "${virtual[@]}" -- "$clients/names" all

# ---- drivers of other versions ----
succeed "of driver 535 the names that came later are missing" '^nvmlDeviceGetTemperatureV$' "${virtual[@]}" --driver 535 -- "$clients/names" hidden
check "and no others" test "$(sort "$dir/out" | tr '\n' ' ')" = "nvmlDeviceGetHandleByUUIDV nvmlDeviceGetTemperatureV "
"${virtual[@]}" --driver 534.9 -- "$clients/names" hidden >"$dir/out"
check "the day before, more are" test "$(wc -l <"$dir/out")" = 7
"${virtual[@]}" --driver 575 -- "$clients/names" hidden >"$dir/out"
check "of driver 575 none is" test ! -s "$dir/out"
"${virtual[@]}" -- "$clients/names" hidden >"$dir/out"
check "without --driver all are there" test ! -s "$dir/out"
succeed "its version" '^driver 0 535\.104\.05 nvml 12\.535\.104\.05 cuda 12020$' "${virtual[@]}" --driver 535.104.05 -- "$clients/probe" driver
succeed "the standard one" '^driver 0 550\.54\.15 nvml 12\.550\.54\.15 cuda 12040$' "${virtual[@]}" -- "$clients/probe" driver
succeed "application clocks until 580" '^nvmlDeviceResetApplicationsClocks 0$' "${virtual[@]}" --driver 580 -- "$clients/probe" call nvmlDeviceResetApplicationsClocks 0
succeed "deprecated from 590 on" '^nvmlDeviceResetApplicationsClocks 26$' "${virtual[@]}" --driver 590 -- "$clients/probe" call nvmlDeviceResetApplicationsClocks 0
succeed "the power fields came with 535" '^field 0 3 0$' "${virtual[@]}" --driver 530 -- "$clients/probe" field 186 0
succeed "and are there" '^field 0 0 [1-9][0-9]+$' "${virtual[@]}" --driver 535 -- "$clients/probe" sleep 1 field 186 0
for bad in 12 535. x535 535.1.2.3 1000 "" 449; do
  refuse "--driver '$bad'" 2 "expected a version from 450 on" "${virtual[@]}" --driver "$bad" -- true
done

# ---- events ----
LOCK=600 succeed "a change of the clock is an event, once" '^wait 0 kind 16 data 0 mine 1 after 0\.1[0-9]0 s$' "${virtual[@]}" -- "$clients/events" 0x10 500 2
check "then the wait takes its time, to the end" grep -qx 'wait 10 kind 0 data 0 mine 0 after 0.500 s' "$dir/out"
check "a set that was freed is none" grep -qx 'freed 0 again 2' "$dir/out"
LOCK=600 succeed "who asked for no clocks hears of none" '^wait 10 kind 0 data 0 mine 0 after 0\.300 s$' "${virtual[@]}" -- "$clients/events" 0x8 300 1
for how in --fault --error; do
  succeed "a lost GPU is Xid 79 ($how)" '^wait 0 kind 8 data 79 mine 1 after 1\.000 s$' "${virtual[@]}" $how lost:gpu=0,from_s=1 -- "$clients/events" 0x18 3000 2
  check "and nothing comes after ($how)" grep -qx 'wait 15 kind 0 data 0 mine 0 after 0.000 s' "$dir/out"
done
succeed "the end of the work changes the performance state" '^wait 0 kind 4 data 0 mine 1 after 5\.[0-9]+ s$' "${virtual[@]}" -- "$clients/events" 0x4 9000 1
succeed "kinds that no simulated board has" '^registered 3$' "${virtual[@]}" -- "$clients/events" 0x80 0 1
succeed "wall time too" '^wait 10 kind 0 data 0 mine 0 after 0\.[0-9]+ s$' "${emulate[@]}" --platform generic -- "$clients/events" 0x8 20 1

# ---- temperature, memory power ----
succeed "without --heat a constant" '^number 0 40$' "${virtual[@]}" -- "$clients/probe" number nvmlDeviceGetTemperature 0
succeed "with it the model's" '^number 0 (4[1-9]|[5-9][0-9])$' "${virtual[@]}" --heat -- "$clients/probe" sleep 5 number nvmlDeviceGetTemperature 0
check "the help says so" grep -q 'temperature is 40 C at all times without' <("$f" emulate --help all)
succeed "no board before Hopper shows the power of its memory" '^field 0 3 0$' "${virtual[@]}" -- "$clients/probe" sleep 1 field 186 2
hopper=(--platform "$dir/hopper.json" --time virtual)
sed 's/"name": "Generic[^"]*"/"name": "Generic H100"/' models/platforms/generic.json >"$dir/hopper.json"
succeed "Hopper does" '^field 0 0 [1-9][0-9]+$' "${emulate[@]}" "${hopper[@]}" -- "$clients/probe" sleep 1 field 186 2
memory=$(awk '{ print $4 }' "$dir/out")
succeed "of the whole board" '^field 0 0 [1-9][0-9]+$' "${emulate[@]}" "${hopper[@]}" -- "$clients/probe" sleep 1 field 185 0
check "a part of it: $memory mW" test "$memory" -lt "$(awk '{ print $4 }' "$dir/out")"
succeed "and of no module" '^field 0 3 0$' "${emulate[@]}" "${hopper[@]}" -- "$clients/probe" sleep 1 field 186 1

succeed "the first fan" '^number 0 30$' "${virtual[@]}" -- "$clients/probe" number nvmlDeviceGetFanSpeed_v2 0
succeed "there is no second" '^number 2 0$' "${virtual[@]}" -- "$clients/probe" number nvmlDeviceGetFanSpeed_v2 1

# ---- application clocks in the report ----
succeed "application clocks that are left are reported" '"application_sm_mhz":	*1200' "${virtual[@]}" -o - -- "$clients/probe" appclocks 0 1200
check "and those of the memory" grep -qE '"application_mem_mhz":	*[1-9]' "$dir/out"

# ---- errors on request that would concern nothing ----
wrong() { refuse "$1" 2 "$2" "${virtual[@]}" --error "$3" -- true; }
wrong "no such function" "NVML has no function 'nvmlDeviceSetGpuLokedClocks', did you mean 'nvmlDeviceSetGpuLockedClocks'\\?" \
  no-permission:call=nvmlDeviceSetGpuLokedClocks
wrong "nor one of that pattern" "NVML has no function 'xyz\\*'" 'lost:call=xyz*'
wrong "a GPU that the node lacks" 'GPU 9, but the node has [0-9]+, counted from 0' lost:gpu=9
wrong "a reading has no effect anyway" 'the call sets nothing' without-effect:call=nvmlDeviceGetPowerUsage
succeed "a pattern of functions" '^number 15 ' "${virtual[@]}" --error 'lost:call=nvmlDeviceGet@(Temperature|FanSpeed)' -- "$clients/probe" number nvmlDeviceGetTemperature 0

finish
