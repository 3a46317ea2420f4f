package attach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"memtrace/internal/control"
)

// remoteExec is the script for a second interpreter of the process's version: it has the process run a script.
const remoteExec = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])"

// loadScript runs in the process, in its main thread, between two instructions. Once the command has given up it does
// nothing, for the user has read that nothing was changed. Why a library cannot be loaded is reported by the next
// method, ptrace.
const loadScript = `import time
if time.time() < %.3f:
    try:
        import ctypes
        ctypes.CDLL(%s, 0x102).` + loadFunction + `()
    except Exception:
        pass
`

// interpreterName matches executables of CPython 3.14 and later, which run scripts for other processes (PEP 768).
var interpreterName = regexp.MustCompile(`^python3\.(1[4-9]|[2-9][0-9])t?$`)

// loadByPython has the process's own interpreter load the library: it needs no thread to be stopped.
func (r *Recorder) loadByPython(ctx context.Context, o Options, pid int, library string) error {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	exe, err := os.Readlink(filepath.Join(proc, "exe"))
	switch {
	case err != nil:
		return fmt.Errorf("process %d belongs to another user: run memtrace attach as that user or as root", pid)
	case !interpreterName.MatchString(filepath.Base(exe)):
		return fmt.Errorf("process %d is not CPython 3.14 or later", pid)
	case !sameFiles(pid):
		return fmt.Errorf("process %d sees other files than this one", pid)
	}
	over := time.Now().Add(o.Timeout / 2) // the other half is for the next door
	begin := over.Add(-o.Timeout / 20)    // the library may need a moment
	script, err := writeScript(pid, fmt.Sprintf(loadScript, float64(begin.UnixMilli())/1000,
		strconv.QuoteToASCII(library)))
	if err != nil {
		return fmt.Errorf("write a script for process %d: %w", pid, err)
	}
	r.Log.Info().Msgf("asking the interpreter of process %d to load %s", pid, library)
	said, err := exec.CommandContext(ctx, filepath.Join(proc, "exe"), "-I", "-S", "-c", remoteExec, strconv.Itoa(pid),
		script).CombinedOutput()
	if err != nil {
		return errors.Join(fmt.Errorf("its interpreter refuses: %s", lastLine(said)), os.Remove(script))
	}
	_, err = requestWhile(pid, "status", func() bool {
		return time.Now().Before(over) && isRunning(pid) && ctx.Err() == nil
	})
	switch {
	case !errors.Is(err, control.ErrNoSocket):
		return os.Remove(script)
	case !isRunning(pid):
		return errors.Join(fmt.Errorf("process %d ended meanwhile", pid), os.Remove(script))
	}
	// The file stays: the interpreter would complain that it is gone when its main thread comes back to Python.
	return fmt.Errorf("its main thread runs no Python now, and %s is left for it, which does nothing by then", script)
}

// writeScript writes a script that the user of the process may read, and no other user may change.
func writeScript(pid int, text string) (string, error) {
	file, err := os.CreateTemp("", "memtrace-*.py")
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(text)
	if info, failed := os.Stat(filepath.Join("/proc", strconv.Itoa(pid))); failed == nil && os.Geteuid() == 0 {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok {
			err = errors.Join(err, file.Chown(int(owner.Uid), int(owner.Gid)))
		}
	}
	return file.Name(), errors.Join(err, file.Close())
}

func lastLine(text []byte) string {
	lines := strings.Split(string(bytes.TrimSpace(text)), "\n")
	return lines[len(lines)-1]
}
