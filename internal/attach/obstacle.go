package attach

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"memtrace/internal/render/layout"
	"memtrace/internal/spool"
)

// facts are the lines of a file such as /proc/PID/status, by name.
type facts map[string]string

func factsOf(path string) (facts, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := make(facts)
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		f[name] = strings.TrimSpace(value)
	}
	return f, nil
}

// number is the first word of a line, 0 if that is not a number.
func (f facts) number(name string) uint64 {
	word, _, _ := strings.Cut(f[name], " ")
	n, _ := strconv.ParseUint(word, 10, 64)
	return n
}

// obstacle returns why the library may not be loaded into a process as it is now, nil if it may: it would hang, harm
// the program or end it. It is called before anything is loaded, for what is loaded stays.
func obstacle(pid int) error {
	status, err := goingOn(pid)
	if err != nil {
		return fmt.Errorf("there is no process %d", pid)
	}
	if !isOurs(pid) && os.Geteuid() != 0 {
		return foreign(pid, "attach")
	}
	state := status.state()
	switch {
	case status["VmSize"] == "" || !spool.Running(state[0]):
		return fmt.Errorf("process %d is ending, or one of the kernel's own threads: it has no memory", pid)
	case state == "T":
		return fmt.Errorf("process %d is stopped: let it go on first, by: kill -CONT %d", pid, pid)
	}
	if err := filterObstacle(pid, status); err != nil {
		return err
	}
	return roomObstacle(pid, status)
}

// Some processes are stopped for moments, by limits on processor time or by tools that take their picture.
const (
	stoppedLook  = 20 * time.Millisecond // between two looks at a process that is stopped
	stoppedLooks = 50
)

// goingOn returns the status of a process, which goes on or has been stopped for a while.
func goingOn(pid int) (status facts, err error) {
	for range stoppedLooks {
		if status, err = factsOf(filepath.Join(procOf(pid), "status")); err != nil || status.state() != "T" {
			break
		}
		time.Sleep(stoppedLook)
	}
	return status, err
}

// state is the letter for what a process does.
func (f facts) state() string {
	state, _, _ := strings.Cut(f["State"], " ")
	return state
}

func foreign(pid int, verb string) error {
	return fmt.Errorf("process %d belongs to another user: run memtrace %s as that user or as root", pid, verb)
}

// tracerObstacle returns the tracer that the process has already: it can have one only.
func tracerObstacle(pid int) error {
	status, err := factsOf(filepath.Join(procOf(pid), "status"))
	if err != nil {
		return nil
	}
	tracer := int(status.number("TracerPid"))
	if tracer == 0 {
		return nil
	}
	return fmt.Errorf("process %d is traced by process %d (%s), and has one tracer at most: end that one first", pid,
		tracer, CommandOf(tracer))
}

const (
	filtersNothing = 0 // as /proc/PID/status has Seccomp
	filtersCalls   = 2
	// firstNumbers is the machine's own namespace of process numbers (linux/proc_ns.h).
	firstNumbers = "pid:[4026531836]"
)

// filterObstacle refuses a process of which a thread may be killed for the system calls of loading a library. The
// contents of a filter cannot be read. One that the parent has as well was there before the program, and in a container
// it denies without killing; the library itself decides in the same way (cshim/base/sandbox.c).
func filterObstacle(pid int, status facts) error {
	tasks, err := filepath.Glob(filepath.Join(procOf(pid), "task", "*", "status"))
	if err != nil {
		return err
	}
	for _, task := range tasks {
		f, err := factsOf(task)
		if err != nil || f.number("Seccomp") == filtersNothing {
			continue // it has ended, or nothing is filtered
		}
		if f.number("Seccomp") != filtersCalls || !ofContainer(pid, f, status) {
			return fmt.Errorf("process %d filters its system calls (seccomp), and a filter may kill it over one that "+
				"loading a library makes: start the program by memtrace run, or with MEMTRACE_START=asleep", pid)
		}
	}
	return nil
}

// ofContainer reports whether the filters of a thread are those of the process's container.
func ofContainer(pid int, thread, status facts) bool {
	numbers, err := os.Readlink(filepath.Join(procOf(pid), "ns", "pid"))
	if err != nil || numbers == firstNumbers {
		return false
	}
	inside := strings.Fields(status["NSpid"])
	if len(inside) > 0 && inside[len(inside)-1] == "1" {
		return thread["Seccomp_filters"] == "1"
	}
	parent, err := factsOf(filepath.Join(procOf(int(status.number("PPid"))), "status"))
	return err == nil && parent.number("Seccomp") == filtersCalls &&
		thread.number("Seccomp_filters") <= parent.number("Seccomp_filters")
}

// What the library and a recording take, measured: its variables, tables for stacks and names, and two threads. Its
// drainer, which takes more, does not start where there is less (cshim/process/boot.c).
const (
	dataRoom  = 112 << 20
	spaceRoom = 512 << 20
)

// roomObstacle refuses a process whose limits leave too little: what was loaded by then would stay, and the program's
// own allocations would fail.
func roomObstacle(pid int, status facts) error {
	limits, err := os.ReadFile(filepath.Join(procOf(pid), "limits"))
	if err != nil {
		return nil
	}
	for _, l := range []struct {
		name, used, what, flag string
		need                   uint64
	}{
		{"Max data size", "VmData", "data", "data", dataRoom},
		{"Max address space", "VmSize", "address space", "as", spaceRoom},
	} {
		limit, limited := limitOf(string(limits), l.name)
		used := status.number(l.used) << 10
		if limited && limit < used+l.need {
			return fmt.Errorf("the limit of process %d on %s leaves %s, and recording takes up to %s: raise it first, "+
				"by: prlimit --pid %d --%s=%d", pid, l.what, layout.Bytes(limit-min(limit, used)), layout.Bytes(l.need),
				pid, l.flag, used+l.need)
		}
	}
	return nil
}

// limitOf reads the soft limit of a line such as "Max data size  20480000  unlimited  bytes".
func limitOf(text, name string) (limit uint64, limited bool) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			words := strings.Fields(rest)
			limit, err := strconv.ParseUint(words[0], 10, 64)
			return limit, err == nil
		}
	}
	return 0, false
}
