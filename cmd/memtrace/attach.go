package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"memtrace/analyzer/render/layout"
	"memtrace/internal/control"
)

const attachLong = `Record a program that runs already, from now on, without stopping it.

If the library is preloaded already (MEMTRACE_START=asleep), recording begins at
once. Otherwise the library is loaded first: by the interpreter where that is CPython
3.14 or later, else by ptrace, in a thread that waits in a system call. That thread
is stopped for some milliseconds; the others run on.

Blocks that PyTorch holds at that moment are recorded from its own snapshot, to the
byte, as "before recording began": their call stacks are unknown. Other memory from
before is unknown; reports show it as the device's remainder.

With --duration the recording is stopped after that time, and the trace is whole.
Without it the recording goes on until the program ends, or until:

  memtrace ctl PID stop

A process can be recorded once.`

const attachExample = `  memtrace attach 4711
  memtrace attach --duration 30s -o server.bin 4711
  memtrace report server.bin`

type attachOptions struct {
	output   string
	force    bool
	duration time.Duration
	timeout  time.Duration
	library  string
	door     string
}

// Doors by which the library comes into a process.
const (
	doorAuto   = "auto"
	doorPython = "python"
	doorPtrace = "ptrace"
)

func (a *app) attachCommand() *cobra.Command {
	var o attachOptions
	cmd := &cobra.Command{
		Use:               "attach [flags] PID",
		Short:             "Record a program that runs already",
		Long:              attachLong,
		Example:           attachExample,
		Args:              onePID,
		ValidArgsFunction: completePIDs,
		RunE: func(_ *cobra.Command, args []string) error {
			pid, err := parsePID(args[0])
			if err != nil {
				return err
			}
			return a.attach(o, pid)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "name of the trace, a `PATTERN` as for memtrace run (default "+defaultOutput+")")
	f.BoolVarP(&o.force, "force", "f", false, "replace a trace that exists")
	f.DurationVarP(&o.duration, "duration", "d", 0, "stop recording after a `TIME` such as 30s or 5m")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "give up, with nothing changed, when the library could not be loaded within a `TIME`")
	f.StringVar(&o.library, "library", "", "`PATH` of "+libraryName+" as the process sees it, where that is another one than here, as in a container")
	f.StringVar(&o.door, "door", doorAuto, "how the library is loaded: `auto, python or ptrace`")
	mustComplete(cmd, "door", completeValues(doorAuto, doorPython, doorPtrace))
	return cmd
}

func onePID(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("name one process by its number")
	}
	return nil
}

func parsePID(text string) (int, error) {
	pid, err := strconv.Atoi(text)
	if err != nil || pid <= 0 {
		return 0, usagef("%s is not the number of a process", text)
	}
	return pid, nil
}

// completePIDs offers the processes that have a GPU's library loaded.
func completePIDs(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	entries, err := os.ReadDir("/proc")
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var list []cobra.Completion
	for _, entry := range entries {
		maps, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "maps"))
		if err != nil || !strings.Contains(string(maps), "/libcuda.so") {
			continue
		}
		name, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "comm"))
		list = append(list, cobra.CompletionWithDesc(entry.Name(), strings.TrimSpace(string(name))))
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) attach(o attachOptions, pid int) error {
	if o.door != doorAuto && o.door != doorPython && o.door != doorPtrace {
		return usagef("--door %s: choose %s, %s or %s", o.door, doorAuto, doorPython, doorPtrace)
	}
	if o.duration < 0 {
		return usagef("--duration %s: give a time above 0", o.duration)
	}
	request, err := startRequest(o.output, o.force, pid)
	if err != nil {
		return err
	}
	answer, err := control.Ask(pid, "status")
	if errors.Is(err, control.ErrNoSocket) {
		answer, err = a.loadInto(o, pid)
	}
	if err == nil {
		answer, err = a.begin(pid, answer, request)
	}
	if err != nil {
		return err
	}
	a.sayBegun(pid, answer)
	if o.duration == 0 {
		return nil
	}
	return a.stopAfter(pid, o.duration, answer)
}

// startRequest asks for a recording with the settings of the command line. A trace without a name comes into this
// folder, unless the process is another user's or sees other files: then into the folder in which it started.
func startRequest(output string, force bool, pid int) (string, error) {
	request := "start"
	switch {
	case output != "":
		pattern, err := outputPattern(output, force)
		if err != nil {
			return "", err
		}
		request += "\nMEMTRACE_OUTPUT=" + pattern
	case sameFiles(pid) && isOurs(pid):
		here, err := os.Getwd()
		if err != nil {
			return "", err
		}
		request += "\nMEMTRACE_OUTPUT=" + filepath.Join(strings.ReplaceAll(here, "%", "%%"), defaultOutput)
	}
	if strings.Count(request, "\n") > 1 {
		return "", usagef("the trace's name contains a line break")
	}
	if force {
		request += "\nMEMTRACE_FORCE=1"
	}
	return request, nil
}

// isOurs reports whether a process has the user that this one has.
func isOurs(pid int) bool {
	info, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	if err != nil {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Geteuid()
}

// begin has a process record that has the library.
func (a *app) begin(pid int, now control.Answer, request string) (control.Answer, error) {
	switch now.State {
	case control.Recording:
		return now, fmt.Errorf("process %d is recorded already, in %s", pid, now.Trace)
	case control.Ended:
		return now, fmt.Errorf("the recording of process %d has ended, in %s; a process can be recorded once", pid, now.Trace)
	}
	a.log.Info().Msgf("asking process %d to record", pid)
	answer, err := control.Ask(pid, request)
	if err == nil && answer.State != control.Recording && answer.State != control.Idle {
		err = fmt.Errorf("process %d could not begin to record: it is %s", pid, answer.State)
	}
	return answer, err
}

func (a *app) sayBegun(pid int, answer control.Answer) {
	if a.quiet {
		return
	}
	if answer.State == control.Idle {
		a.say("process %d is recorded from its first CUDA call on", pid)
		return
	}
	a.say("recording process %d in %s", pid, shortPath(answer.Trace))
	if answer.Start == control.StartedLate {
		if answer.Held > 0 {
			a.say("the %s that PyTorch held are recorded by its own account", layout.Bytes(answer.Held))
		}
		a.say("what else was allocated before now is not known, and counts as the device's remainder")
		a.log.Info().Msgf("Python stood still for %s", answer.Stood.Round(10*time.Microsecond))
	}
	a.say("look at it now: memtrace report %s; stop: memtrace ctl %d stop", shellWord(shortPath(answer.Trace)), pid)
}

// stopAfter stops the recording when the time is over, or the user interrupts.
func (a *app) stopAfter(pid int, duration time.Duration, begun control.Answer) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	over := time.After(duration)
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for waiting := true; waiting; {
		select {
		case <-ctx.Done():
			waiting = false
		case <-over:
			waiting = false
		case <-look.C:
			if !isRunning(pid) {
				a.say("the program has ended; its trace is %s", begun.Trace)
				return nil
			}
		}
	}
	return a.stop(pid)
}
