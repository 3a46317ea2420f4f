package main

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/spf13/cobra"

	"memtrace/internal/visible"
)

// The exit statuses of every verb but run.
const (
	exitOK      = 0
	exitFailure = 2
)

// The statuses of run when the program could not be started, as shells and env(1) use them.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// signalStatusBase is what shells add to the number of the signal that ended a program.
const signalStatusBase = 128

// usageError is a mistake on the command line: it is followed by a pointer to the verb's help.
type usageError struct {
	err error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// statusError carries an exit status. Without err there is nothing left to print: whoever made it has said what there
// was to say.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

// finish prints what err has to say and returns the exit status that belongs to it. cmd is the verb that failed, or the
// root.
func (a *app) finish(cmd *cobra.Command, err error) int {
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return exitOK // whoever read our output has seen enough
	}
	var status *statusError
	if errors.As(err, &status) {
		if status.err != nil {
			a.complain(cmd.CommandPath(), status.err)
		}
		return status.status
	}
	a.complain(cmd.CommandPath(), err)
	var usage *usageError
	if errors.As(err, &usage) {
		a.tell("Run '%s -h' for help and examples.", cmd.CommandPath())
	}
	return exitFailure
}

// complain prints one error on stderr under the name of verb, as typed. Joined errors get a line each.
func (a *app) complain(verb string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			a.complain(verb, e)
		}
		return
	}
	a.tell("%s: %s", verb, visible.Text(err.Error()))
}

// say prints a line on stderr.
func (a *app) say(format string, args ...any) {
	a.tell("memtrace: %s", visible.Text(fmt.Sprintf(format, args...)))
}

// tell prints a line on stderr, in several where the terminal is narrower.
func (a *app) tell(format string, args ...any) {
	fmt.Fprintln(a.stderr, fitText(fmt.Sprintf(format, args...), terminalColumns(a.stderr)))
}
