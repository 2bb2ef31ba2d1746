#!/usr/bin/env bash
# A grid as a job array of five on a real Slurm, started here with a munge key and ports of its own, as the user who runs
# the test: the merged result is the same bytes as one run. Where Slurm is not installed it says so and passes.
#   tests/slurm.sh BUILD
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1
build=$(realpath "${1:?usage: tests/slurm.sh BUILD}")
export PATH=$PATH:/usr/sbin:/sbin
for p in slurmctld slurmd sbatch munged mungekey; do
  command -v $p >/dev/null || { echo "slurm: skipped, no $p (Debian packages slurmctld slurmd slurm-client munge)"; exit 0; }
done
work=$(mktemp -d "${TMPDIR:-/tmp}/foldline-slurm-XXXXXX") || exit 1
pids=()
stop() {
  [ ${#pids[@]} = 0 ] || { kill "${pids[@]}" 2>/dev/null; sleep 0.3; kill -9 "${pids[@]}" 2>/dev/null; }
  rm -rf "$work"
}
trap stop EXIT
fail() {
  echo "slurm: $*"
  tail -n 15 "$work"/*.log 2>/dev/null
  exit 1
}

mkdir -m 755 "$work"/{state,spool,munge,run} && chmod 755 "$work" || exit 1
mungekey --create --keyfile="$work/munge/key" >"$work/mungekey.log" 2>&1 || fail "no munge key"
munged --foreground --force --key-file="$work/munge/key" --socket="$work/munge/socket" --pid-file="$work/munge/pid" \
  --log-file="$work/munge.log" --seed-file="$work/munge/seed" >"$work/munged.log" 2>&1 &
pids+=($!)
host=$(hostname -s)
port=$((20000 + RANDOM % 20000))
cat >"$work/slurm.conf" <<CONF
ClusterName=foldline
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CredType=cred/munge
SlurmctldPort=$port
SlurmdPort=$((port + 1))
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/run/slurmctld.pid
SlurmdPidFile=$work/run/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,batch_sched_delay=0
MinJobAge=300
ReturnToService=2
MailProg=/bin/true
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$work/slurm.conf
alive() { for p in "${pids[@]}"; do kill -0 "$p" 2>/dev/null || fail "a daemon has ended"; done; sleep 0.2; }
until [ -S "$work/munge/socket" ]; do alive; done
slurmctld -D -c >"$work/ctld.log" 2>&1 &
pids+=($!)
slurmd -D >"$work/d.log" 2>&1 &
pids+=($!)
until sinfo -h -o %T 2>/dev/null | grep -q idle; do alive; done

"$build/foldline" grid tests/gate/gate.json -o "$work/whole.csv" --seconds 10 >"$work/whole.log" 2>&1 || fail "the grid fails by itself"
ids=$(FOLDLINE=$build/foldline GRID_OPTIONS="--seconds 10" harness/slurm/submit.sh tests/gate/gate.json "$work/array.csv" 5) ||
  fail "cannot submit"
until [ -s "$work/array.csv" ]; do
  alive
  left=$(squeue -h -o %r 2>/dev/null) || continue # why each job waits
  [ -n "$(grep -v DependencyNeverSatisfied <<<"$left")" ] || [ -s "$work/array.csv" ] || { squeue; fail "jobs $ids gave no result"; }
done
cmp "$work/whole.csv" "$work/array.csv" || fail "an array of five gives other bytes"
echo "slurm: an array of five tasks on slurm $(slurmctld -V | cut -d' ' -f2) gave the same $(wc -l <"$work/whole.csv") lines"
