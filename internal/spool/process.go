package spool

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Alive reports whether the recording process still writes to this spool: same machine since the same boot, same pid
// namespace, same pid, same start time, and the spool mapped. Without the last, a process that replaced its program by
// exec would seem to record for ever: it keeps pid and start time. The program that recorded is gone then, as after a
// kill.
func (s *Spool) Alive() bool {
	if s.data.u64(offBootHash) != bootHash() || s.data.u64(offPIDNamespace) != pidNamespace() {
		return false
	}
	p, ok := findProcess(s.PID())
	return ok && p.start == s.data.u64(offProcessStart) && p.maps(s.name, s.file.Inode)
}

// exitedByItself reports whether the process, which is dead, ended by exit or _exit: it requested a last flush, and
// whether or not that completed, the spool holds what is missing.
func (s *Spool) exitedByItself() bool { return s.data.load32(offControl) != controlRecording }

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

// process is a process that runs.
type process struct {
	task  string // folder in /proc of one of its threads that runs
	start uint64 // in clock ticks since boot
}

// findProcess looks a process up; ok is false without one or with only its zombie. The first thread of a process may
// have ended before the others: then it looks like a zombie, and has no memory map, while the process goes on.
func findProcess(pid int) (process, bool) {
	folder := "/proc/" + strconv.Itoa(pid)
	state, start, ok := ReadStat(folder)
	if !ok {
		return process{}, false
	}
	if Running(state) {
		return process{folder, start}, true
	}
	tasks, err := filepath.Glob(folder + "/task/*")
	if err != nil {
		return process{}, false
	}
	for _, task := range tasks {
		if state, _, ok := ReadStat(task); ok && Running(state) {
			return process{task, start}, true
		}
	}
	return process{}, false
}

// Running reports whether a state is that of a thread that goes on, not of one that has ended.
func Running(state byte) bool { return state != 'Z' && state != 'X' }

// ReadStat reads what a process, or one of its threads, is doing and when it began, in clock ticks since boot, from its
// folder in /proc: fields 3 and 22 of its stat file. ok is false when it is gone.
func ReadStat(folder string) (state byte, start uint64, ok bool) {
	text, err := os.ReadFile(folder + "/stat")
	if err != nil {
		return 0, 0, false
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return 0, 0, false
	}
	start, err = strconv.ParseUint(string(fields[19]), 10, 64)
	return fields[0][0], start, err == nil
}

// maps reports whether the process has a file mapped, known by its inode or its name: some file systems show different
// inodes in a map and in a folder, and a process may know the file by another path. A map that may not be read counts
// as one that has it.
func (p process) maps(name string, inode uint64) bool {
	file, err := os.Open(p.task + "/maps")
	if err != nil {
		return true
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		// start-end permissions offset device inode, then spaces and the path
		fields := strings.SplitN(lines.Text(), " ", 6)
		if len(fields) < 6 || fields[4] == "0" {
			continue
		}
		path := strings.TrimSuffix(strings.TrimLeft(fields[5], " "), " (deleted)")
		if fields[4] == strconv.FormatUint(inode, 10) || filepath.Base(path) == name {
			return true
		}
	}
	return lines.Err() != nil
}
