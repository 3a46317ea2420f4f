package main

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

// outcome is how the program ended.
type outcome struct {
	pid    int
	status int            // what run exits with
	signal syscall.Signal // the signal that ended the program, or 0
}

// signalName is what the signal that ended the program is called, "" without one.
func (o outcome) signalName() string {
	if o.signal == 0 {
		return ""
	}
	if name := unix.SignalName(o.signal); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", o.signal)
}

// runChild starts argv with the given environment and this process's standard streams, passes signals on, and waits. An
// error means that the program never ran; it carries the exit status that a shell would give.
func runChild(argv, environment []string) (outcome, error) {
	path, err := lookProgram(argv[0])
	if err != nil {
		return outcome{}, err
	}
	// Signals that come before the program runs wait in the relay's queue.
	signals := newRelay()
	defer signals.stop()
	process, err := startProgram(path, argv, environment)
	if err != nil {
		return outcome{}, startError(argv[0], err)
	}
	signals.start(process)
	state, err := process.Wait()
	if err != nil {
		return outcome{}, fmt.Errorf("wait for %s: %w", argv[0], err)
	}
	out := outcome{pid: process.Pid, status: state.ExitCode()}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		out.signal = ws.Signal()
		out.status = signalStatusBase + int(ws.Signal())
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
		return "", &statusError{exitNotFound, fmt.Errorf("%s: no such program in PATH", name)}
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
			return &statusError{exitNotFound, fmt.Errorf("%s: the interpreter that it names does not exist", name)}
		}
		return &statusError{exitNotFound, fmt.Errorf("%s: no such program", name)}
	}
	if info, statErr := os.Stat(name); statErr == nil && info.IsDir() {
		cause = syscall.EISDIR
	}
	return &statusError{exitNotExecutable, fmt.Errorf("%s: cannot be executed: %w", name, cause)}
}
