package attach

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// settle is how long a thread must have been found waiting in the same place. Locks are waited for much shorter.
const settle = 10 * time.Millisecond

// stackRoom is how much of its stack a thread must have left: the loader and the constructors run on it.
const stackRoom = 64 << 10

// waiter is a thread that waits in a system call.
type waiter struct {
	tid    int
	number uint64 // of the system call
	sp, pc uint64
	slept  string // how often it has gone to sleep
}

// waiting lists the threads that have been waiting in the same system call for a while, those first that wait for
// nothing that another thread has.
func (t *target) waiting() ([]waiter, error) {
	before, err := t.look()
	if err != nil {
		return nil, err
	}
	time.Sleep(settle)
	after, err := t.look()
	if err != nil {
		return nil, err
	}
	still := slices.DeleteFunc(before, func(w waiter) bool { return !slices.Contains(after, w) })
	slices.SortStableFunc(still, func(a, b waiter) int { return rank(a) - rank(b) })
	return still, nil
}

func rank(w waiter) int { return slices.Index(waits[:], w.number) }

func (t *target) look() ([]waiter, error) {
	tasks, err := os.ReadDir(filepath.Join(t.proc, "task"))
	if err != nil {
		return nil, fmt.Errorf("there is no process %d", t.pid)
	}
	var list []waiter
	for _, task := range tasks {
		w, err := t.lookAt(task.Name())
		if errors.Is(err, os.ErrPermission) {
			return nil, t.explain(err)
		}
		if err == nil && slices.Contains(waits[:], w.number) && t.hasStack(w.sp) && !t.readsFile(task.Name()) {
			list = append(list, w)
		}
	}
	return list, nil
}

var errRuns = errors.New("the thread runs")

// lookAt reads a line such as "202 0x7f.. 0x80 0x0 0x0 0x0 0xff.. 0x7ffd.. 0x7f..": the call, its arguments, stack
// pointer and program counter; or "running".
func (t *target) lookAt(task string) (waiter, error) {
	dir := filepath.Join(t.proc, "task", task)
	line, err := os.ReadFile(filepath.Join(dir, "syscall"))
	if err != nil {
		return waiter{}, err
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return waiter{}, err
	}
	fields := strings.Fields(string(line))
	// a shadow stack holds no such call
	if len(fields) != 9 || strings.Contains(field(status, "x86_Thread_features:"), "shstk") {
		return waiter{}, errRuns
	}
	w := waiter{slept: field(status, "voluntary_ctxt_switches:")}
	w.tid, _ = strconv.Atoi(task)
	w.number, err = strconv.ParseUint(fields[0], 10, 64)
	for i, place := range map[int]*uint64{7: &w.sp, 8: &w.pc} {
		if err == nil {
			*place, err = strconv.ParseUint(fields[i], 0, 64)
		}
	}
	return w, err
}

// field returns what follows a name in /proc/PID/status.
func field(status []byte, name string) string {
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// readsFile reports whether the thread waits for a file's contents: the loader itself may.
func (t *target) readsFile(task string) bool {
	line, err := os.ReadFile(filepath.Join(t.proc, "task", task, "syscall"))
	fields := strings.Fields(string(line))
	if err != nil || len(fields) < 2 || fields[0] != strconv.Itoa(readCall) {
		return err != nil
	}
	fd, err := strconv.ParseUint(fields[1], 0, 32)
	if err != nil {
		return true
	}
	file, err := os.Readlink(filepath.Join(t.proc, "fd", strconv.FormatUint(fd, 10)))
	return err != nil || strings.HasPrefix(file, "/") && !strings.HasPrefix(file, "/dev/pts/") &&
		!strings.HasPrefix(file, "/dev/tty") && file != "/dev/null"
}

func (t *target) hasStack(sp uint64) bool {
	for _, r := range t.regions {
		if sp >= r.start && sp < r.end {
			return r.name == "[stack]" || sp-r.start >= stackRoom // the first thread's grows
		}
	}
	return true // made since; glibc's are larger than that
}
