#!/usr/bin/env bash
# A board made from what `nvidia-smi -q -x` prints: shown, fitted, emulated; and files that are none of that. The file here
# has that tool's elements, of a board that does not exist.
. "$(dirname "$0")/shell.sh"

clients=$(dirname "$f")/clients xml=tests/support/smi.xml
"$f" synth -o "$dir/w.csv" --kernels 2000 --mean-us 3000 --seed 3 >/dev/null || exit 1
emulate=("$f" emulate "$dir/w.csv" --quiet --privileged --time virtual)

succeed "shown like a board" '^  SM clocks +210, 510, 810, 1110, 1410, 1710 MHz +nvidia-smi -q -x$' "$f" list platforms $xml
check "those of its highest memory clock" grep -qE '^  memory clocks +405, 6251 MHz ' "$dir/out"
check "its limits" test "$(grep -cE '^  (lowest|default|highest) power limit +(100|300|320) W ' "$dir/out")" = 3
check "what it does not say is unknown" grep -qx '  memory bandwidth' "$dir/out"
refuse "a JSON of it there is not" 2 "is not JSON" "$f" list platforms $xml --json
succeed "a platform of it" '^written' "$f" fit device --facts $xml -o "$dir/b.json"
succeed "with its limit" 'power limit: 300 W' "$f" list platforms "$dir/b.json"

succeed "emulated: as many GPUs as the file has" '^devices 2$' "${emulate[@]}" --board $xml -- "$clients/probe" who
check "the first" grep -qxF 'who NVIDIA Example 24|GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9|1322021000001|94.02.75.00.01|00000000:17:00.0|223710de|24146608128' "$dir/out"
check "the second, with what is known; it has no serial number" grep -qxF 'who NVIDIA Example 24|GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8fa||94.02.75.00.01|00000000:65:00.0|223710de|17179869184' "$dir/out"
board=(--board $xml --platform "$dir/b.json") # made once: the law that is assumed takes a while
succeed "its driver, with the names of that" '^driver 0 535\.104\.05 nvml 12\.535\.104\.05 cuda 12020$' "${emulate[@]}" "${board[@]}" -- "$clients/probe" driver
succeed "unless another is asked for" '^driver 0 570\.0 ' "${emulate[@]}" "${board[@]}" --driver 570 -- "$clients/probe" driver
succeed "its clocks" '^lock 0$' "${emulate[@]}" "${board[@]}" -- "$clients/probe" lock 0 810 810 sleep 0.5 show
check "are those of the ladder" grep -qE '^gpu 0 power 0 [0-9]+ sm 0 810 mem 0 6251 ' "$dir/out"
succeed "its limits bind" '^limit 2$' "${emulate[@]}" "${board[@]}" -- "$clients/probe" limit 0 99000 limit 0 100000 limit 0 320000 limit 0 321000
check "at both ends" test "$(tr '\n' ' ' <"$dir/out")" = "limit 2 limit 0 limit 0 limit 2 "
succeed "beside a platform it is who the GPUs say they are" '^who NVIDIA Example 24' "${emulate[@]}" --board $xml --platform generic -- "$clients/probe" who
succeed "fewer GPUs" '^devices 1$' "${emulate[@]}" "${board[@]}" --gpus 1 -- "$clients/probe" who
succeed "activity records come" '^2000 kernels of 1 programs, 0 lost' "${emulate[@]}" "${board[@]}" --rings "$dir/rings" -- \
  "$f" live --policy depo --control --for 9s --rings "$dir/rings" -o "$dir/log.csv"
check "by the same UUIDs" awk -F, '$3 == 0 && $7 > 1900 { found = 1 } END { exit !found }' "$dir/log.csv"
sed 's/<product_architecture>.*</<product_architecture>Pascal</' $xml >"$dir/pascal.xml"
pascal=(--board "$dir/pascal.xml" --platform "$dir/b.json")
for call in "lock 0 810 810" "call nvmlDeviceResetGpuLockedClocks 0" "call nvmlDeviceResetMemoryLockedClocks 0" "call nvmlDeviceGetTotalEnergyConsumption 0"; do
  succeed "a board before Volta: $call" ' 3$' "${emulate[@]}" "${pascal[@]}" -- "$clients/probe" $call
  succeed "a later one: $call" ' 0$' "${emulate[@]}" "${board[@]}" -- "$clients/probe" $call
done
succeed "its application clocks may be set" '^nvmlDeviceResetApplicationsClocks 0$' "${emulate[@]}" "${pascal[@]}" -- "$clients/probe" call nvmlDeviceResetApplicationsClocks 0
refuse "a policy cannot lock its clocks" 3 'locking the SM clock: Not Supported' "${emulate[@]}" "${pascal[@]}" -- "$f" live --policy assure --control --for 5s
succeed "a platform has its own PCI device and memory" '\|233010de\|85520809984$' "${emulate[@]}" --platform h100 -- "$clients/probe" who
succeed "a bundled board" '^who L4\|' "${emulate[@]}" --board l4 -- "$clients/probe" who
refuse "no such board" 2 "no board 'nosuch', expected one of" "${emulate[@]}" --board nosuch -- true
check "nothing is left of the platforms that were made" test -z "$(ls -d /tmp/foldline-board-* 2>/dev/null)"

# ---- what is wrong with a file ----
broken() { # NAME, PATTERN, sed expression
  sed "$3" $xml >"$dir/bad.xml"
  refuse "$1" 2 "$2" "${emulate[@]}" --board "$dir/bad.xml" -- true
}
broken "no XML" 'bad.xml:[0-9]+:[0-9]+: not XML from here on' 's/<uuid>/<uuid/'
broken "an end that is not there" 'bad.xml:[0-9]+:[0-9]+: not XML' '$d'
broken "another tool's" 'bad.xml:3:1: <rocm_log>, expected <nvidia_smi_log>' 's/nvidia_smi_log>/rocm_log>/'
broken "no GPU" 'bad.xml:[0-9]+:1: no <gpu>' '/<gpu /,/<\/gpu>/d'
broken "no name" 'bad.xml:8:2: nvidia_smi_log/gpu: no product_name' '/<product_name>/d'
broken "two kinds of boards" 'another product than the first GPU' '0,/Example 24/s//Example 25/'
broken "no number" 'bad.xml:36:4: nvidia_smi_log/gpu/gpu_power_readings/default_power_limit: expected a number of W above 0' 's/>300.00 W</>3OO.00 W</'
broken "another unit" 'expected a number of MHz above 0' 's/>6251 MHz</>6251 GHz</'
broken "less than nothing" 'expected a number of MiB above 0' 's/>23028 MiB</>-1 MiB</'
broken "no default limit" 'unknown: the default power limit' 's/>300.00 W</>N\/A</'
broken "a clock of no MHz" 'bad.xml:[0-9]+:[0-9]+: .*: expected 1 to 100000 MHz' 's/>6251 MHz</>0.4 MHz</'
broken "a driver that is no version" "bad.xml: driver_version 'N/A', expected a version from 450 on.*--driver" 's/<driver_version>.*</<driver_version>N\/A</'
succeed "unless another is asked for" '^driver 0 570\.0 ' "${emulate[@]}" --board "$dir/bad.xml" --platform "$dir/b.json" --driver 570 -- "$clients/probe" driver
broken "declared entities" 'bad.xml:[0-9]+:[0-9]+: declares the entity a, expected none' 's/^<!DOCTYPE.*/<!DOCTYPE nvidia_smi_log [<!ENTITY a "b">]>/'
echo '<this/>' >"$dir/bad.xml"
refuse "an empty element of another tool" 2 'bad.xml:1:1: <this>, expected <nvidia_smi_log>' "$f" list platforms "$dir/bad.xml"
{ echo '<nvidia_smi_log>'; printf '%64s' | sed 's/ /<a>/g'; } >"$dir/bad.xml"
refuse "elements without end within each other" 2 'bad.xml:2:190: .*: more than 64 elements within each other' "$f" list platforms "$dir/bad.xml"
sed "s/NVIDIA Example 24/$(printf '%62s' | tr ' ' x)éé/" $xml >"$dir/long.xml"
succeed "a long name ends with a whole character" "long.xml: x{62}$" "$f" list platforms "$dir/long.xml"
: >"$dir/bad.xml"
refuse "an empty file" 2 'bad.xml:1:1: not XML' "$f" list platforms "$dir/bad.xml"

finish
