package spool

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Alive reports whether the recording process still runs: same machine since the same boot, same pid namespace, same pid, same start time.
func (s *Spool) Alive() bool {
	if s.u64(offBootHash) != bootHash() || s.u64(offPIDNamespace) != pidNamespace() {
		return false
	}
	start, ok := processStart(s.PID())
	return ok && start == s.u64(offProcessStart)
}

func bootHash() uint64 {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	hash := uint64(14695981039346656037)
	for _, b := range bytes.TrimRight(text, "\n") {
		hash = (hash ^ uint64(b)) * 1099511628211
	}
	return hash
}

func pidNamespace() uint64 {
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/pid", &st) != nil {
		return 0
	}
	return st.Ino
}

// processStart reads field 22 of /proc/PID/stat, in clock ticks since boot; ok is false when there is no such process or it is a zombie.
func processStart(pid int) (start uint64, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 || len(fields[0]) == 0 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return 0, false
	}
	start, err = strconv.ParseUint(string(fields[19]), 10, 64)
	return start, err == nil
}
