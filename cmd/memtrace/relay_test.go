package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// guestScript is a program that writes a line for each signal it gets, until it is to end. It ends with status 3.
const guestScript = `
note() { echo $1 >> got; }
for s in HUP INT QUIT TERM USR1 USR2 WINCH; do trap "note $s" $s; done
%s
echo $$ > pid.new && mv pid.new pid
while [ ! -e go ]; do sleep 0.01; done
exit 3
`

// relayed are what guestScript notes.
var relayed = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1,
	syscall.SIGUSR2, syscall.SIGWINCH}

// guest is a memtrace that runs guestScript in a folder of its own.
type guest struct {
	*testing.T
	dir string
	cmd *exec.Cmd
}

// startGuest starts memtrace with extra lines in the guest, as a process group of its own, and waits until the guest is
// ready.
func startGuest(t *testing.T, extra string, attr *syscall.SysProcAttr, terminal *os.File) *guest {
	t.Helper()
	g := &guest{T: t, dir: t.TempDir(), cmd: exec.Command("memtrace", "run", "-q", "--", "sh", "guest.sh")}
	if err := os.WriteFile(filepath.Join(g.dir, "guest.sh"), fmt.Appendf(nil, guestScript, extra), 0o600); err != nil {
		t.Fatal(err)
	}
	g.cmd.Dir = g.dir
	g.cmd.Env = append(os.Environ(), "MEMTRACE_LIBRARY="+emptyLibrary(t))
	g.cmd.SysProcAttr = attr
	g.cmd.Stdin = terminal
	// Caught here, they are as ever in the guest, also where they were ignored when the tests began: SIGHUP under
	// nohup, SIGINT in a shell's background. A shell cannot trap those.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, relayed...)
	defer signal.Stop(caught)
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL) // fails where all went well
	})
	g.until("the guest is ready", func() bool { return g.read("pid") != "" })
	return g
}

func (g *guest) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(g.dir, name))
	return string(text)
}

// until waits for a condition; the patience is only ever spent by a failing test.
func (g *guest) until(what string, condition func() bool) {
	g.Helper()
	for begin := time.Now(); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begin) > 15*time.Minute {
			g.Fatalf("never came to pass: %s; the guest got %q", what, g.read("got"))
		}
	}
}

// send sends a signal to memtrace alone.
func (g *guest) send(s syscall.Signal) {
	g.Helper()
	if err := g.cmd.Process.Signal(s); err != nil {
		g.Fatal(err)
	}
}

// finish lets the guest end and checks its status and what it got.
func (g *guest) finish(want string) {
	g.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, "go"), nil, 0o600); err != nil {
		g.Fatal(err)
	}
	_ = g.cmd.Wait()
	if status := g.cmd.ProcessState.ExitCode(); status != 3 {
		g.Errorf("exit status %d (%v), want the guest's 3", status, g.cmd.ProcessState)
	}
	if got := strings.Join(strings.Fields(g.read("got")), " "); got != want {
		g.Errorf("the guest got %q, want %q", got, want)
	}
}

// state is the letter of a process's state: S sleeping, T stopped.
func state(pid string) string {
	stat, _ := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(pid), "stat"))
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return string(rest[:min(1, len(rest))])
}

func TestSignalsReachTheProgramOnce(t *testing.T) {
	g := startGuest(t, "", &syscall.SysProcAttr{Setpgid: true}, nil)
	var want []string
	for _, s := range relayed {
		s := s.(syscall.Signal)
		g.send(s)
		want = append(want, strings.TrimPrefix(unix.SignalName(s), "SIG"))
		g.until(unix.SignalName(s)+" is noted", func() bool { return len(strings.Fields(g.read("got"))) >= len(want) })
	}
	g.finish(strings.Join(want, " "))
}

func TestStopAndContinue(t *testing.T) {
	g := startGuest(t, "trap 'note TSTP; kill -STOP $$; note CONT' TSTP", &syscall.SysProcAttr{Setpgid: true}, nil)
	memtrace := fmt.Sprint(g.cmd.Process.Pid)
	g.send(syscall.SIGTSTP)
	g.until("the guest stops", func() bool { return state(g.read("pid")) == "T" })
	g.until("memtrace stops as well", func() bool { return state(memtrace) == "T" })
	g.send(syscall.SIGCONT)
	g.until("both continue", func() bool { return strings.Contains(g.read("got"), "CONT") })
	g.finish("TSTP CONT")
}

func TestStopRefused(t *testing.T) {
	g := startGuest(t, "trap '' TSTP", &syscall.SysProcAttr{Setpgid: true}, nil)
	g.send(syscall.SIGTSTP)
	g.send(syscall.SIGTERM)
	g.until("memtrace goes on", func() bool { return strings.Contains(g.read("got"), "TERM") })
	g.finish("TERM")
}

func TestInterruptFromTerminalComesOnce(t *testing.T) {
	keyboard, terminal := openTerminal(t)
	g := startGuest(t, "", &syscall.SysProcAttr{Setsid: true, Setctty: true}, terminal)
	const ctrlC = "\x03"
	if _, err := keyboard.WriteString(ctrlC); err != nil {
		t.Fatal(err)
	}
	g.until("INT is noted", func() bool { return strings.Contains(g.read("got"), "INT") })
	// Signals are passed on in order: a second INT would have come before this one.
	g.send(syscall.SIGUSR1)
	g.until("USR1 is noted", func() bool { return strings.Contains(g.read("got"), "USR1") })
	g.finish("INT USR1")
}

func TestIgnoredHangupStaysIgnored(t *testing.T) {
	g := &guest{T: t, dir: t.TempDir()}
	script := `trap '' HUP; exec memtrace run -q -- sh -c 'grep SigIgn /proc/self/status'`
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "MEMTRACE_LIBRARY="+emptyLibrary(t))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var mask uint64
	if _, err := fmt.Sscanf(string(out), "SigIgn: %x", &mask); err != nil || mask&(1<<(syscall.SIGHUP-1)) == 0 {
		t.Errorf("the program started with %q, want SIGHUP ignored as it was for memtrace", out)
	}
}

// openTerminal returns the two ends of a pseudo terminal.
func openTerminal(t *testing.T) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keyboard.Close() })
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return keyboard, terminal
}
