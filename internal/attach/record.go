// Package attach handles running processes: it has them load the library (by the interpreter, or by ptrace) and record,
// sends requests to those that are recorded, and lists what refers to their tensors. internal/control reads the
// library's answers.
package attach

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

	"memtrace/internal/cli"
	"memtrace/internal/control"
	"memtrace/internal/launch"
	"memtrace/internal/render/layout"
)

// Options are how a process comes to be recorded, and for how long.
type Options struct {
	Output   string        // the trace, as a pattern
	Force    bool          // replaces a trace that exists
	Duration time.Duration // 0: until it is stopped
	Timeout  time.Duration // of loading the library
	Library  string        // its path as the process sees it; "": as it is here
	Door     string
}

// Recorder has running processes recorded, and prints the results on a console.
type Recorder struct {
	*cli.Console
}

// Doors by which the library comes into a process.
const (
	// DoorAuto tries DoorPython before DoorPtrace.
	DoorAuto = "auto"
	// DoorPython has the interpreter load the library.
	DoorPython = "python"
	// DoorPtrace has a thread that is stopped load the library.
	DoorPtrace = "ptrace"
)

// Attach records a process from now on, loading the library into it where it is not there yet.
func (r *Recorder) Attach(o Options, pid int) error {
	if o.Door != DoorAuto && o.Door != DoorPython && o.Door != DoorPtrace {
		return cli.UsageErrorf("--door %s: choose %s, %s or %s", o.Door, DoorAuto, DoorPython, DoorPtrace)
	}
	if o.Duration < 0 {
		return cli.UsageErrorf("--duration %s: give a time above 0", o.Duration)
	}
	request, err := startRequest(o.Output, o.Force, pid)
	if err != nil {
		return err
	}
	answer, err := control.Request(pid, "status")
	if errors.Is(err, control.ErrNoSocket) {
		answer, err = r.loadInto(o, pid)
	}
	if err == nil {
		answer, err = r.begin(pid, answer, request)
	}
	if err != nil {
		return err
	}
	r.printStarted(pid, answer)
	if o.Duration == 0 {
		return nil
	}
	return r.stopAfter(pid, o.Duration, answer)
}

// startRequest requests a recording with the settings of the command line. A trace without a name comes into this
// folder, unless the process is another user's or sees other files: then into the folder in which it started.
func startRequest(output string, force bool, pid int) (string, error) {
	request := "start"
	switch {
	case output != "":
		pattern, err := launch.OutputPattern(output, force)
		if err != nil {
			return "", err
		}
		request += "\nMEMTRACE_OUTPUT=" + pattern
	case sameFiles(pid) && isOurs(pid):
		here, err := os.Getwd()
		if err != nil {
			return "", err
		}
		request += "\nMEMTRACE_OUTPUT=" + filepath.Join(strings.ReplaceAll(here, "%", "%%"), launch.DefaultOutput)
	}
	if strings.Count(request, "\n") > 1 {
		return "", cli.UsageErrorf("the trace's name contains a line break")
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
func (r *Recorder) begin(pid int, now control.Answer, request string) (control.Answer, error) {
	switch now.State {
	case control.Recording:
		return now, fmt.Errorf("process %d is recorded already, in %s; to look at it, type: memtrace ctl %d report", pid,
			now.Trace, pid)
	case control.Ended:
		return now, fmt.Errorf("the recording of process %d has ended, in %s; a process can be recorded once",
			pid, now.Trace)
	}
	r.Log.Info().Msgf("asking process %d to record", pid)
	answer, err := control.Request(pid, request)
	if err == nil && answer.State != control.Recording && answer.State != control.Idle {
		err = fmt.Errorf("process %d could not begin to record: it is %s", pid, answer.State)
	}
	return answer, err
}

func (r *Recorder) printStarted(pid int, answer control.Answer) {
	if r.Quiet {
		return
	}
	if answer.State == control.Idle {
		r.Say("process %d is recorded from its first CUDA call on", pid)
		return
	}
	r.Say("recording process %d in %s", pid, cli.ShortPath(answer.Trace))
	if answer.Start == control.StartedLate {
		if answer.Held > 0 {
			r.Say("the %s that PyTorch held are recorded by its own account", layout.Bytes(answer.Held))
		}
		r.Say("what else was allocated before now is not known, and counts as the device's remainder")
		r.Log.Info().Msgf("Python stood still for %s", answer.Stood.Round(10*time.Microsecond))
	}
	r.Say("look at it now: memtrace report %s; stop: memtrace ctl %d stop",
		cli.ShellWord(cli.ShortPath(answer.Trace)), pid)
}

// stopAfter stops the recording when the time is over, or the user interrupts.
func (r *Recorder) stopAfter(pid int, duration time.Duration, begun control.Answer) error {
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
				r.Say("the program has ended; its trace is %s", begun.Trace)
				return nil
			}
		}
	}
	return r.Stop(pid)
}

// Request sends a request to a process that has a socket, or will have one soon.
func (r *Recorder) Request(pid int, request string) (control.Answer, error) {
	patient := patience()
	answer, err := requestWhile(pid, request, func() bool { return patient() && mappedLibrary(pid) != "" })
	if !errors.Is(err, control.ErrNoSocket) {
		return answer, err
	}
	if !isRunning(pid) {
		return answer, fmt.Errorf("there is no process %d", pid)
	}
	if !isOurs(pid) && os.Geteuid() != 0 {
		return answer, foreign(pid, "ctl")
	}
	if trace, recorded := recordedBy(pid); recorded {
		return answer, fmt.Errorf(
			"process %d is recorded in %s and has no control socket: MEMTRACE_CONTROL is off there, or its folder (MEMTRACE_CONTROL_DIR, else below /tmp) cannot be written to", pid, trace)
	}
	return answer, notRecorded(pid)
}

// notRecorded advises memtrace attach only where that can work and is of use.
func notRecorded(pid int) error {
	err := obstacle(pid)
	if err == nil {
		err = tracerObstacle(pid)
	}
	switch {
	case err != nil:
		return fmt.Errorf("process %d has no control socket, for it is not recorded, and nothing can be attached: %w", pid,
			err)
	case !mayUseCUDA(pid):
		return fmt.Errorf("process %d has no control socket, for it is not recorded, and has loaded neither CUDA nor "+
			"Python: name the process that uses the GPU (memtrace top lists them), or start the program by memtrace run",
			pid)
	}
	return fmt.Errorf(
		"process %d has no control socket, for it is not recorded; to record it, type: memtrace attach %d",
		pid, pid)
}

// mayUseCUDA reports whether a process has a library of CUDA, or Python, which loads it later.
func mayUseCUDA(pid int) bool {
	return mappedFile(procOf(pid), func(base string) bool {
		for _, name := range []string{"libcuda.so", "libcudart", "libpython", "python"} {
			if strings.HasPrefix(base, name) {
				return true
			}
		}
		return false
	}) != ""
}

// Start has a process record that has the library and waits.
func (r *Recorder) Start(output string, force bool, pid int) error {
	request, err := startRequest(output, force, pid)
	if err != nil {
		return err
	}
	answer, err := r.Request(pid, "status")
	if err == nil {
		answer, err = r.begin(pid, answer, request)
	}
	if err == nil {
		r.printStarted(pid, answer)
	}
	return err
}

// Stop ends a recording.
func (r *Recorder) Stop(pid int) error {
	answer, err := r.Request(pid, "stop")
	if err != nil {
		return fmt.Errorf("stop recording process %d: %w", pid, err)
	}
	switch {
	case r.Quiet:
	case answer.Trace == "":
		r.Say("process %d made no CUDA call, so there is no trace; nothing is recorded from now on", pid)
	default:
		r.Say("stopped; next: memtrace report %s", cli.ShellWord(cli.ShortPath(answer.Trace)))
	}
	return nil
}

// TraceOf returns the path of a process's trace as this one must open it.
func TraceOf(pid int, answer control.Answer) (string, error) {
	if answer.Trace == "" {
		return "", fmt.Errorf("process %d has no trace yet: it is %s", pid, answer.State)
	}
	if sameFiles(pid) {
		return cli.ShortPath(answer.Trace), nil
	}
	return filepath.Join("/proc", strconv.Itoa(pid), "root", answer.Trace), nil
}
