package launch

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// relayed are the signals that users and job managers send to a program and that must reach it although they are sent
// to this process.
var relayed = []syscall.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT,
}

// fromTerminal are the signals that a terminal sends to every process of its foreground group, the program included.
var fromTerminal = map[syscall.Signal]bool{syscall.SIGINT: true, syscall.SIGQUIT: true, syscall.SIGWINCH: true,
	syscall.SIGTSTP: true}

// relayQueue holds signals that arrive faster than they are passed on; the kernel merges equal ones before that.
const relayQueue = 64

// relay passes signals on to the program. The program stays in this process's group, so that a terminal, a shell's job
// control and a kill of the group treat both as one job.
type relay struct {
	queue    chan os.Signal
	done     chan struct{}
	process  *os.Process
	stopping bool // a stop was requested: it follows once the program has stopped
}

// newRelay begins to collect signals. A signal that was ignored when this process began stays ignored, here and in the
// program (nohup).
func newRelay() *relay {
	r := &relay{queue: make(chan os.Signal, relayQueue), done: make(chan struct{})}
	signal.Notify(r.queue, syscall.SIGCHLD)
	for _, s := range relayed {
		if !signal.Ignored(s) {
			signal.Notify(r.queue, s)
		}
	}
	return r
}

// start begins to pass signals on to process.
func (r *relay) start(process *os.Process) {
	r.process = process
	go func() {
		for {
			select {
			case <-r.done:
				return
			case s := <-r.queue:
				r.handle(s.(syscall.Signal))
			}
		}
	}()
}

// stop ends the relay. Afterwards Ctrl-C ends this process again, as it should while a report is being made.
func (r *relay) stop() {
	signal.Stop(r.queue)
	close(r.done)
}

func (r *relay) handle(s syscall.Signal) {
	if s != syscall.SIGCHLD {
		r.pass(s)
	}
	switch s {
	case syscall.SIGTSTP:
		r.stopping = true
	case syscall.SIGCONT:
		r.stopping = false
	}
	// A stop that was caught must still reach the shell that waits for this process, but after the program's: that may
	// refuse, or save its screen first. The report of its stop may overtake the signal that requested it, hence the
	// check after both.
	if r.stopping && stopped(r.process.Pid) {
		r.stopping = false
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
}

// pass sends one signal on. Its sender is unknown; only its probable origin is: a process in the foreground of its
// terminal gets its interrupts from the keyboard, and the program has then got its own.
func (r *relay) pass(s syscall.Signal) {
	if !fromTerminal[s] || !inForeground() {
		// os.Process refuses to signal a process that has been waited for, so a reused pid is never hit.
		_ = r.process.Signal(s)
	}
}

// stopped reports whether a child is stopped, and leaves that status to be waited for again.
func stopped(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo == int32(unix.SIGCHLD)
}

// inForeground reports whether this process belongs to the group that the controlling terminal sends its signals to.
func inForeground() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
