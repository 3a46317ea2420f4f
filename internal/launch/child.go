// Package launch starts a program with the recorder preloaded: the library that is preloaded, the environment that sets
// it up, the folder in which processes list their traces, and the program itself, to which signals are passed on. It
// reads no trace and prints nothing: the command reports what a run left.
package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Outcome is how the program ended.
type Outcome struct {
	PID    int
	Status int            // what run exits with
	Signal syscall.Signal // the signal that ended the program, or 0
}

// SignalName is what the signal that ended the program is called, "" without one.
func (o Outcome) SignalName() string {
	if o.Signal == 0 {
		return ""
	}
	if name := unix.SignalName(o.Signal); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", o.Signal)
}

// Run starts argv with the given environment and this process's standard streams, passes signals on, and waits. An
// error means that the program never ran; it carries the exit status that a shell would return.
func Run(argv, environment []string) (Outcome, error) {
	path, err := lookProgram(argv[0])
	if err != nil {
		return Outcome{}, err
	}
	// Signals that come before the program runs wait in the relay's queue.
	signals := newRelay()
	defer signals.stop()
	process, err := startProgram(path, argv, environment)
	if err != nil {
		return Outcome{}, startError(argv[0], err)
	}
	signals.start(process)
	state, err := process.Wait()
	if err != nil {
		return Outcome{}, fmt.Errorf("wait for %s: %w", argv[0], err)
	}
	out := Outcome{PID: process.Pid, Status: state.ExitCode()}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		out.Signal = ws.Signal()
		out.Status = signalStatusBase + int(ws.Signal())
	}
	return out, nil
}

// lookProgram finds the program as a shell would.
func lookProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil, errors.Is(err, exec.ErrDot): // a PATH that holds "." is the user's choice
		return path, nil
	case errors.Is(err, exec.ErrNotFound) && !strings.Contains(name, "/"):
		return "", &StatusError{exitNotFound, fmt.Errorf("%s: no such program in PATH", name)}
	}
	return "", startError(name, err)
}

// startProgram is execve with execvp's one addition: a script that names no interpreter is one for /bin/sh.
func startProgram(path string, argv, environment []string) (*os.Process, error) {
	attr := &os.ProcAttr{Env: environment, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}}
	process, err := os.StartProcess(path, argv, attr)
	if errors.Is(err, syscall.ENOEXEC) {
		return os.StartProcess("/bin/sh", append([]string{"/bin/sh", path}, argv[1:]...), attr)
	}
	return process, err
}

// startError words why a program did not start.
func startError(name string, err error) error {
	var inner *fs.PathError
	var look *exec.Error
	cause := err
	switch {
	case errors.As(err, &inner):
		cause = inner.Err
	case errors.As(err, &look):
		cause = look.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, statErr := os.Stat(name); statErr == nil {
			return &StatusError{exitNotFound, fmt.Errorf("%s: the interpreter that it names does not exist", name)}
		}
		return &StatusError{exitNotFound, fmt.Errorf("%s: no such program", name)}
	}
	if info, statErr := os.Stat(name); statErr == nil && info.IsDir() {
		cause = syscall.EISDIR
	}
	return &StatusError{exitNotExecutable, fmt.Errorf("%s: cannot be executed: %w", name, cause)}
}

// The statuses of run when the program could not be started, as shells and env(1) use them.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// signalStatusBase is what shells add to the number of the signal that ended a program.
const signalStatusBase = 128

// StatusError carries an exit status. Without Err there is nothing left to print: its creator has printed the error.
type StatusError struct {
	Status int
	Err    error
}

// Error returns the text of Err, or names the status without one.
func (e *StatusError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *StatusError) Unwrap() error { return e.Err }
