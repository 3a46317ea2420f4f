package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// child starts a process that ends with the test, and waits until it runs the program.
func child(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for !strings.Contains(mapsOf(t, cmd.Process.Pid), "/libc") {
		time.Sleep(time.Millisecond)
	}
	return cmd
}

func mapsOf(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// needsPtrace skips where this kind of processor or the system does not let a process trace its children.
func needsPtrace(t *testing.T) {
	t.Helper()
	if len(waits) == 0 {
		t.Skip("not on this processor")
	}
	if text, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil &&
		strings.TrimSpace(string(text)) == "3" {
		t.Skip("the system lets nobody trace processes")
	}
}

// ample is time that only what hangs uses up.
const ample = 10 * time.Minute

func within(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// state is the letter of what a process does: S while it waits, t while it is traced.
func state(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	return field(text, "State:")[:1]
}

// A library that cannot be loaded is an error with the loader's own words, and the thread that was stopped waits on.
func TestLoadNoLibrary(t *testing.T) {
	needsPtrace(t)
	p := child(t, "sleep", "100")
	before, failed := unix.Getpriority(unix.PRIO_PROCESS, p.Process.Pid)
	if failed != nil {
		t.Fatal(failed)
	}
	result, err := LoadLibrary(within(t, ample), p.Process.Pid, "/no/such/library.so", "f")
	if err == nil || !strings.Contains(err.Error(), "cannot load /no/such/library.so") ||
		!strings.Contains(err.Error(), "No such file") {
		t.Errorf("%+v, %v", result, err)
	}
	for state(t, p.Process.Pid) != "S" {
		time.Sleep(time.Millisecond)
	}
	if priority, err := unix.Getpriority(unix.PRIO_PROCESS, p.Process.Pid); err != nil || priority != before {
		t.Errorf("its priority was %d and is %d, %v", 20-before, 20-priority, err)
	}
}

// A function that the library does not have has its own error.
func TestLoadNoFunction(t *testing.T) {
	needsPtrace(t)
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err)
	}
	library := filepath.Join(t.TempDir(), "small.so")
	build := exec.Command(compiler, "-shared", "-fPIC", "-x", "c", "-o", library, "-")
	build.Stdin = strings.NewReader("int no(void) { return 0; } int yes(void) { return 1; }")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := child(t, "sleep", "100")
	// one after the other in the same thread
	for function, problem := range map[string]string{"f": "has no function f", "no": "cannot record in this process",
		"yes": ""} {
		result, err := LoadLibrary(within(t, ample), p.Process.Pid, library, function)
		if problem == "" && (err != nil || result.Thread != p.Process.Pid || result.Stopped <= 0) || problem != "" &&
			(err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%s: %+v, %v; want %s", function, result, err, problem)
		}
	}
	if maps := mapsOf(t, p.Process.Pid); !strings.Contains(maps, library) {
		t.Errorf("it is not loaded:\n%s", maps)
	}
}

// Where each thread runs all the time nothing is touched, and it ends when the time is over.
func TestLoadBusy(t *testing.T) {
	needsPtrace(t)
	p := child(t, "sh", "-c", "while :; do :; done")
	if _, err := LoadLibrary(within(t, 100*time.Millisecond), p.Process.Pid, "/no/such/library.so", "f"); !errors.Is(
		err,
		ErrNoThread) {
		t.Errorf("%v", err)
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := LoadLibrary(stopped, p.Process.Pid, "/no/such/library.so", "f"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestLoadNoProcess(t *testing.T) {
	needsPtrace(t)
	if _, err := LoadLibrary(within(t, ample), 1<<22+1, "/x.so", "f"); err == nil ||
		!strings.Contains(err.Error(), "there is no process") {
		t.Errorf("%v", err)
	}
	// No process may trace itself.
	if _, err := LoadLibrary(within(t, ample), os.Getpid(), "/x.so", "f"); err == nil || errors.Is(err, ErrNoThread) ||
		strings.Contains(err.Error(), "cannot load") {
		t.Errorf("%v", err)
	}
}

// fakeProcess is a folder like one of /proc.
func fakeProcess(t *testing.T, maps string) *target {
	t.Helper()
	proc := t.TempDir()
	if err := os.WriteFile(filepath.Join(proc, "maps"), []byte(maps), 0o600); err != nil {
		t.Fatal(err)
	}
	regions, err := readRegions(proc)
	if err != nil {
		t.Fatal(err)
	}
	return &target{pid: 4711, proc: proc, regions: regions}
}

// The libraries of the process decide whether it can be attached to, and are reported; malformed lines are ignored.
func TestFindFunctions(t *testing.T) {
	for maps, problem := range map[string]string{
		"": "linked statically",
		"00400000-00500000 r-xp 00000000 08:01 1 /bin/program\n":                       "linked statically",
		"7f0000000000-7f0000010000 r-xp 00000000 08:01 1   /lib/ld-musl-x86_64.so.1\n": "uses musl",
		"7f0000000000-7f0000010000 r-xp 00000000 08:01 1   /lib/libc.so\n":             "uses musl",
		"7f0000000000-7f0000010000 r-xp 00000000 08:01 1   /no/such/libc.so.6\n":       "read the process's C library",
		"x\nx-y z\n-\n\n7f00-7f01\nzz-yy rw-p qq 00:00 0 [stack]\n":                    "linked statically",
		// its head is not mapped
		"7f0000000000-7f0000010000 r-xp 00001000 08:01 1   /lib/libc.so.6\n": "linked statically",
		"7f0000000000-7f0000010000 r-xp 00000000 08:01 1   " + strings.Repeat("/x", 2000) +
			"/program\n": "linked statically",
	} {
		if _, err := findFunctions(fakeProcess(t, maps)); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%.80q: %v, want %s", maps, err, problem)
		}
	}
	if _, err := readRegions(t.TempDir()); err == nil || !strings.Contains(err.Error(), "there is no process") {
		t.Errorf("%v", err)
	}
}

// Only a thread that waits in a call of the list, with space on its stack, without a shadow stack and not for a file's
// contents, is used.
func TestLook(t *testing.T) {
	if len(waits) == 0 {
		t.Skip("not on this processor")
	}
	const pointers = "0x7f0000100000 0x7f0000200000"
	read, poll, write := fmt.Sprint(unix.SYS_READ), fmt.Sprint(unix.SYS_PPOLL), fmt.Sprint(unix.SYS_WRITE)
	p := fakeProcess(t,
		"7f0000000000-7f0000110000 rw-p 00000000 00:00 0\n7f0000300000-7f0000301000 rw-p 00000000 00:00 0\n")
	for fd, leads := range map[string]string{"3": "/home/u/data.bin", "4": "pipe:[1]", "5": "/dev/pts/0"} {
		if err := os.MkdirAll(filepath.Join(p.proc, "fd"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(leads, filepath.Join(p.proc, "fd", fd)); err != nil {
			t.Fatal(err)
		}
	}
	for tid, thread := range map[string]struct {
		syscall, status string
		used            bool
	}{
		"10": {"running\n", "", false},
		"11": {poll + " 0x1 0x2 0x3 0x4 0x5 0x6 " + pointers + "\n", "voluntary_ctxt_switches:\t5\n", true},
		"12": {write + " 0x1 0x2 0x3 0x4 0x5 0x6 " + pointers + "\n", "", false},
		"13": {poll + " 0x1 0x2 0x3 0x4 0x5 0x6 0x7f0000300800 0x7f0000200000\n", "", false}, // a small stack
		"14": {poll + " 0x1 0x2 0x3 0x4 0x5 0x6 " + pointers + "\n", "x86_Thread_features:\tshstk \n", false},
		"15": {read + " 0x3 0x2 0x3 0x4 0x5 0x6 " + pointers + "\n", "", false},
		"16": {read + " 0x4 0x2 0x3 0x4 0x5 0x6 " + pointers + "\n", "", true},
		"17": {read + " 0x5 0x2 0x3 0x4 0x5 0x6 " + pointers + "\n", "", true},
		"18": {read + " 0x99 0x2 0x3 0x4 0x5 0x6 " + pointers + "\n", "", false},
		"19": {poll + " 0x1 0x2\n", "", false},
		"20": {"", "", false},
		"21": {poll + " 0x1 0x2 0x3 0x4 0x5 0x6 0xzz 0x7f0000200000\n", "", false},
		"22": {"-1 0x7f0000100000 0x7f0000200000\n", "", false},
	} {
		folder := filepath.Join(p.proc, "task", tid)
		if err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "syscall"),
			[]byte(thread.syscall), 0o600), os.WriteFile(filepath.Join(folder, "status"), []byte(thread.status),
			0o600)); err != nil {
			t.Fatal(err)
		}
		list, err := p.look()
		if err != nil || (len(list) == 1) != thread.used {
			t.Errorf("thread %s in %q is used: %+v, %v; want %v", tid, thread.syscall, list, err, thread.used)
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
}

// The error number's address is read from the function that returns it, if it is the one that glibc has.
func TestErrnoWord(t *testing.T) {
	load, add := []byte{0x48, 0x8b, 0x05, 0x10, 0, 0, 0}, errnoAdd
	plain := append(append([]byte{}, load...), add...)
	for _, c := range []struct {
		name string
		code []byte
		word uint64
	}{
		{"plain", plain, 0x1000 + 7 + 0x10},
		{"with endbr64", append(append([]byte{}, endbr...), plain...), 0x1000 + 4 + 7 + 0x10},
		{"backwards", append([]byte{0x48, 0x8b, 0x05, 0xf0, 0xff, 0xff, 0xff}, add...), 0x1000 + 7 - 0x10},
		{"short", plain[:len(plain)-1], 0},
		{"empty", nil, 0},
		{"another register", append([]byte{0x48, 0x8b, 0x0d, 0x10, 0, 0, 0}, add...), 0},
		{"goes on", append(append([]byte{}, load...), 0x64, 0x48, 0x03, 0x04, 0x25, 0, 0, 0, 0, 0x90), 0},
	} {
		if word, ok := errnoWord(c.code, 0x1000); ok != (c.word != 0) || ok && word != c.word {
			t.Errorf("%s: %#x, %v; want %#x", c.name, word, ok, c.word)
		}
	}
}

// A thread's priority comes back as it was.
func TestRaisePriority(t *testing.T) {
	p := child(t, "sleep", "100")
	if err := unix.Setpriority(unix.PRIO_PROCESS, p.Process.Pid, 19); err != nil {
		t.Fatal(err)
	}
	restore := raisePriority(p.Process.Pid)
	if priority, err := unix.Getpriority(unix.PRIO_PROCESS, p.Process.Pid); err != nil || os.Geteuid() == 0 &&
		priority == 1 {
		t.Logf("its priority is %d, %v: the system does not let it be raised", 20-priority, err)
	}
	restore()
	if priority, err := unix.Getpriority(unix.PRIO_PROCESS, p.Process.Pid); err != nil || priority != 1 {
		t.Errorf("its priority is %d, %v", 20-priority, err)
	}
	raisePriority(1 << 22)()
}
