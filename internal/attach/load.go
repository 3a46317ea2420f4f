package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"memtrace/internal/cli"
	"memtrace/internal/control"
	"memtrace/internal/launch"
)

// loadFunction is the function that is called in a process that the library was loaded into: it sleeps until a request
// over its socket (cshim/process/control.c).
const loadFunction = "memtrace_attach"

// A library that was just loaded opens its socket in a thread of its own, once its runtime has started. Looks are
// counted and not seconds: on a machine that does something else this process gets no more of it than that one.
const (
	socketLook  = 2 * time.Millisecond // between two checks for it
	socketLooks = 2500                 // 5 s at least
)

// loadInto has a process load the library, and returns what that answers.
func (r *Recorder) loadInto(o Options, pid int) (control.Answer, error) {
	none := control.Answer{}
	if !isRunning(pid) {
		return none, fmt.Errorf("there is no process %d", pid)
	}
	if trace, recorded := recordedBy(pid); recorded {
		return none, fmt.Errorf("process %d is recorded already, in %s, and has no control socket; to look at it, type: "+
			"memtrace report %s", pid, trace, cli.ShellWord(trace))
	}
	if err := obstacle(pid); err != nil {
		return none, err
	}
	library, err := o.libraryIn(pid)
	if err != nil {
		return none, err
	}
	stopped, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	ctx, cancelTime := context.WithTimeout(stopped, o.Timeout)
	defer cancelTime()
	if o.Door != DoorPtrace {
		err := r.loadByPython(ctx, o, pid, library)
		if err == nil || o.Door == DoorPython {
			return awaitSocket(ctx, pid, err)
		}
		if ctx.Err() != nil {
			return none, err
		}
		r.Log.Info().Msgf("not by the interpreter: %v", err)
	}
	if err := tracerObstacle(pid); err != nil {
		return none, err
	}
	result, err := LoadLibrary(ctx, pid, library, loadFunction)
	switch {
	case errors.Is(err, ErrNoThread):
		err = fmt.Errorf("nothing was changed, for within %s %w; try again, or with a longer --timeout", o.Timeout, err)
	case err == nil:
		r.Log.Info().Msgf("thread %d stood still for %s", result.Thread, result.Stopped.Round(10*time.Microsecond))
		return awaitSocket(stopped, pid, nil)
	}
	return none, err
}

// libraryIn returns the path of the library as the process sees it.
func (o Options) libraryIn(pid int) (string, error) {
	if loaded := mappedLibrary(pid); loaded != "" {
		return loaded, nil
	}
	if o.Library != "" {
		if !filepath.IsAbs(o.Library) {
			return "", cli.UsageErrorf("--library %s: give the whole path, as the process sees it", o.Library)
		}
		return o.Library, nil
	}
	if !sameFiles(pid) {
		return "", fmt.Errorf(
			"process %d sees other files than this one, as in a container: run memtrace attach in there, or copy %s into it and say where, with --library PATH", pid, launch.LibraryName)
	}
	return launch.SearchLibrary()
}

// awaitSocket returns what the library answers once its thread has opened the socket.
func awaitSocket(ctx context.Context, pid int, loaded error) (control.Answer, error) {
	if loaded != nil {
		return control.Answer{}, loaded
	}
	patient := patience()
	answer, err := requestWhile(pid, "status", func() bool { return patient() && isRunning(pid) && ctx.Err() == nil })
	switch {
	case !errors.Is(err, control.ErrNoSocket):
		return answer, err
	case !isRunning(pid):
		return answer, fmt.Errorf("process %d ended meanwhile", pid)
	}
	return answer, fmt.Errorf(
		"the library was loaded into process %d and does not answer: it may not write to its socket's folder there (MEMTRACE_CONTROL_DIR, else below /tmp), or the process filters its own system calls", pid)
}

// patience allows so many looks for a socket.
func patience() func() bool {
	looks := 0
	return func() bool { looks++; return looks < socketLooks }
}

// requestWhile repeats a request until the process has a socket, or can no longer get one: then the error is
// control.ErrNoSocket.
func requestWhile(pid int, request string, hope func() bool) (control.Answer, error) {
	for {
		answer, err := control.Request(pid, request)
		if !errors.Is(err, control.ErrNoSocket) || !hope() {
			return answer, err
		}
		time.Sleep(socketLook)
	}
}
