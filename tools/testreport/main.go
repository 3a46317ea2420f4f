// Command testreport runs tests and prints for each that failed what is needed to fix it: its claim, the difference,
// the command that runs it alone, and where its recording is.
//
//	testreport [--failures FILE] [--part NAME] [--slowest N] -- COMMAND...
//	testreport --summary FILE
//
// The first form runs COMMAND, whose output is that of `go test -json`, text, or both, and shows it as `go test` would.
// It ends with COMMAND's status. What failed is appended to FILE; the second form prints that, so that a run of many
// parts ends with what failed in them. If several failed, parts may write to FILE at the same time.
//
// Without --failures FILE is that of TESTREPORT_FAILURES, which COMMAND finds set: a testreport that COMMAND runs
// reports through the outer one, and its tests are reported once.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// failuresVariable is the file to which an enclosing testreport has failures appended.
const failuresVariable = "TESTREPORT_FAILURES"

// leftOpen is how long a command that has ended is waited for if a process that it left holds its output open.
var leftOpen = 5 * time.Second

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main with everything that a test sets.
func run(arguments []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("testreport", flag.ContinueOnError)
	flags.SetOutput(stderr)
	failures := flags.String("failures", os.Getenv(failuresVariable), "append what failed to `FILE`")
	part := flags.String("part", "", "`NAME` of the part of the run, for the summary")
	slowest := flags.Int("slowest", 0, "name the `N` tests that took longest")
	summary := flags.String("summary", "", "print what failed, from `FILE`, and run nothing")
	if err := flags.Parse(arguments); err != nil {
		return 2
	}
	command := flags.Args()
	if *summary != "" {
		if err := summarize(*summary, stdout); err != nil {
			fmt.Fprintln(stderr, "testreport:", err)
			return 2
		}
		return 0
	}
	if len(command) == 0 {
		fmt.Fprintln(stderr, "testreport: no command: testreport [--failures FILE] -- COMMAND...")
		return 2
	}
	root, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(stderr, "testreport:", err)
		return 2
	}
	inner, err := os.CreateTemp("", "testreport")
	if err != nil {
		fmt.Fprintln(stderr, "testreport:", err)
		return 2
	}
	inner.Close()
	defer os.Remove(inner.Name())

	w := newWatch(stdout, newSources(root, command))
	status, err := w.command(command, inner.Name())
	if err != nil {
		fmt.Fprintln(stderr, "testreport:", err)
	}
	w.printSlowest(*slowest)
	nested, err := readFailures(inner.Name())
	if err == nil && status != 0 && *failures != "" {
		err = appendFailures(*failures, *part, append(nested, w.failed(status, len(nested) > 0)...))
	}
	if err != nil {
		fmt.Fprintln(stderr, "testreport:", err)
		status = max(status, 2)
	}
	return status
}

// command runs the command to its end and returns its exit status, 128 and the signal's number if one ended it. Both
// its outputs are read as one, since the order of their lines matters.
func (w *watch) command(command []string, inner string) (int, error) {
	cmd := exec.Command(command[0], command[1:]...)
	lines := &lineWriter{line: w.line}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, lines, lines
	cmd.Env = append(os.Environ(), failuresVariable+"="+inner)
	cmd.WaitDelay = leftOpen
	// Ctrl-C reaches the command by itself; its last output is worth reading.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 127, err
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case s := <-signals:
				if s == syscall.SIGTERM {
					cmd.Process.Signal(s)
				}
			case <-ended:
				return
			}
		}
	}()
	err := cmd.Wait()
	lines.end()
	if state, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && state.Signaled() {
		return 128 + int(state.Signal()), nil
	}
	if status := cmd.ProcessState.ExitCode(); status != 0 || errors.Is(err, exec.ErrWaitDelay) {
		return status, nil
	}
	return 0, err
}

// lineWriter passes on what is written to it by lines, without their ends.
type lineWriter struct {
	line func(string)
	rest []byte
}

func (l *lineWriter) Write(text []byte) (int, error) {
	l.rest = append(l.rest, text...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			return len(text), nil
		}
		l.line(string(bytes.TrimSuffix(line, []byte("\r"))))
		l.rest = rest
	}
}

// end passes on a last line that has no end.
func (l *lineWriter) end() {
	if len(l.rest) > 0 {
		l.line(string(l.rest))
		l.rest = nil
	}
}
