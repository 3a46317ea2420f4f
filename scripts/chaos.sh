#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command, such as `make test`, on a machine that is busy with everything else: a test that depends on the load, on seconds or on other processes fails
# here. Beside the command run
#   two busy loops a processor; a writer of 1 GiB of memory, or a quarter of what is free; a writer of a file of 256 MiB, with fsync;
#   twenty programs that allocate and free on the null GPU and are recorded, one of them without a pause;
#   and somebody who stops processes of the command for 10 to 300 ms, one at a time, at random.
# Never stopped are processes for which that means something: those that are stopped already or traced, `memtrace run` and script(1), which stop when their
# program does, and programs under these.
#
# Usage: [CHAOS_RUNS=N] scripts/chaos.sh COMMAND [ARGUMENT...]
# With CHAOS_RUNS says how each run went and ends with "N passed, N failed". The exit status is the command's, of the last run that failed.
set -um # with job control each job is a process group, and its signals are not ignored

(($#)) || { sed -n 's/^# Usage: /usage: /p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
runs=${CHAOS_RUNS:-1}
dir=$(mktemp -d)
hogs=()
job=0
stopped=$dir/stopped # the process that is stopped now

signal_job() { kill -"$2" -- "-$1" 2>/dev/null; }

clean_up() {
  trap '' INT TERM HUP
  for hog in "${hogs[@]}"; do
    signal_job "$hog" KILL
  done
  wait "${hogs[@]}" 2>/dev/null
  [[ ! -s $stopped ]] || kill -CONT "$(<"$stopped")" 2>/dev/null
  rm -rf "$dir"
}

# give_up SIGNAL: passes the signal on, and ends when the command has.
give_up() {
  trap '' INT TERM HUP
  echo "chaos: ended by SIG$1" >&2
  if ((job)); then
    signal_job "$job" "$1"
    signal_job "$job" CONT
    wait "$job" 2>/dev/null
  fi
  exit "$((128 + $(kill -l "$1")))"
}

hog() { # hog COMMAND...: starts one
  "$@" </dev/null >/dev/null 2>&1 &
  hogs+=($!)
}

loop() { while :; do :; done; }

write_memory() {
  exec python3 -c '
free = next(int(l.split()[1]) << 10 for l in open("/proc/meminfo") if l.startswith("MemAvailable"))
block = bytearray(min(1 << 30, free // 4))
while True:
    for at in range(0, len(block), 4096):
        block[at] = (block[at] + 1) & 255'
}

write_disk() {
  while dd if=/dev/zero of="$dir/disk" bs=1M count=256 conv=notrunc,fsync; do :; done
}

# record PAUSE: a recorded program in a folder of its own; its input stays open.
record() {
  mkdir "$dir/$BASHPID" && cd "$dir/$BASHPID" || exit
  unset "${!MEMTRACE_@}"
  export LD_LIBRARY_PATH=$dir/lib NULLCUDA_SHARED=none MEMTRACE_TRACE_MAX=8M MEMTRACE_SPOOL_HARD_MAX=64M MEMTRACE_OVERFLOW=drop
  LD_PRELOAD=$dir/lib/libmemtrace.so exec "$dir/guest" 1 "$1" <>"$dir/input"
}

build_guest() { # what the programs use is copied, for the command may build it anew
  local guests=$root/testdata/guest
  [[ -e $root/build/libmemtrace.so && -e $root/build/nullcuda/lib/libcuda.so.1 ]] || make -s -C "$root" lib nullcuda >&2 || return
  mkdir "$dir/lib" && cp -L "$root/build/nullcuda/lib/"libcuda.so* "$root/build/libmemtrace.so" "$dir/lib" &&
    "${CC:-gcc}" -O2 -I"$root/cshim" -I"$guests" -o "$dir/guest" "$guests/busy.c" -L"$dir/lib" -lcuda -lpthread && mkfifo "$dir/input"
}

# stoppable: the processes below the command, but not those for which a stop means something.
stoppable() {
  ps -eo pid=,ppid=,stat=,comm=,args= | awk -v top="$1" '
    { parent[$1] = $2; state[$1] = $3; name[$1] = $4; runner[$1] = $4 == "script" || $4 == "memtrace" && $6 == "run" || / memtrace run / }
    END {
      for (pid in parent) {
        below = 0
        for (at = pid; at > 1 && at in parent; at = parent[at]) {
          if (runner[at]) { below = 0; break }
          if (at == top) below = 1
        }
        if (below && pid != top && state[pid] !~ /^[TtZX]/) print pid
      }
    }'
}

stop_and_continue() { # below the process whose number is in the file
  local pid pids
  while :; do
    mapfile -t pids < <(stoppable "$(<"$dir/command")")
    pid=${pids[RANDOM % (${#pids[@]} + 1)]:-}
    if [[ -n $pid ]] && grep -qs $'^TracerPid:\t0$' "/proc/$pid/status"; then
      echo "$pid" >"$stopped"
      kill -STOP "$pid"
      sleep "0.$(printf %03d $((10 + RANDOM % 291)))"
      kill -CONT "$pid"
      : >"$stopped"
    fi
    sleep "0.$(printf %03d $((RANDOM % 200)))"
  done
}

trap clean_up EXIT
for signal in INT TERM HUP; do
  # shellcheck disable=SC2064 # the name now
  trap "give_up $signal" "$signal"
done

build_guest || { echo "chaos: there are no recorded programs without make lib nullcuda" >&2; exit 2; }
for ((i = 0; i < 2 * $(nproc); i++)); do hog loop; done
hog write_memory
hog write_disk
for ((i = 0; i < 20; i++)); do hog record "$((i ? 50000 : 0))"; done
echo 0 >"$dir/command"
hog stop_and_continue

status=0 passed=0 failed=0
for ((run = 1; run <= runs; run++)); do
  begin=$SECONDS
  "$@" &
  job=$!
  echo "$job" >"$dir/command"
  wait "$job"
  now=$?
  job=0
  echo 0 >"$dir/command"
  if ((now == 0)); then
    verdict=ok
    ((++passed))
  else
    verdict="failed with status $now" status=$now
    ((++failed))
  fi
  [[ -z ${CHAOS_RUNS:-} ]] || echo "run $run: $verdict, $((SECONDS - begin)) s"
  for hog in "${hogs[@]}"; do
    kill -0 "$hog" 2>/dev/null || { echo "chaos: one of what was to run beside the command has ended" >&2; status=2; }
  done
done
[[ -z ${CHAOS_RUNS:-} ]] || echo "$passed passed, $failed failed"
exit "$status"
