package attach

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"memtrace/internal/launch"
	"memtrace/internal/spool"
	"memtrace/trace"
)

// procOf is the folder in which the system describes a process.
func procOf(pid int) string { return filepath.Join("/proc", strconv.Itoa(pid)) }

// isRunning reports whether there is such a process, and it has not ended.
func isRunning(pid int) bool {
	state, _, ok := spool.ReadStat(procOf(pid))
	return ok && spool.Running(state)
}

// CommandOf is the command line of a process.
func CommandOf(pid int) string {
	text, err := os.ReadFile(filepath.Join(procOf(pid), "cmdline"))
	if err != nil || len(text) == 0 {
		return "?"
	}
	return strings.TrimSpace(string(bytes.ReplaceAll(text, []byte{0}, []byte{' '})))
}

// recordedBy finds the trace of a process that records and has no socket: by the spool that it has mapped, which names
// its process, for a forked child may still have its parent's.
func recordedBy(pid int) (trace string, recorded bool) {
	path := mappedFile(procOf(pid), func(base string) bool { return strings.HasSuffix(base, spool.Extension) })
	if path == "" {
		return "", false
	}
	root := rootFor(pid)
	s, err := spool.Open(root+path, false)
	if err != nil {
		return "", false
	}
	defer s.Close()
	return strings.TrimSuffix(path, spool.Extension), s.PID() == pid || root != ""
}

// rootFor is what comes before a path of a process that sees other files.
func rootFor(pid int) string {
	if sameFiles(pid) {
		return ""
	}
	return filepath.Join(procOf(pid), "root")
}

// RecordingOf describes the recording that a process of this machine makes now, nil if it makes none.
func RecordingOf(pid int) trace.Info {
	path, recorded := recordedBy(pid)
	if !recorded {
		return nil
	}
	s, err := spool.Open(rootFor(pid)+path+spool.Extension, false)
	if err != nil {
		return nil
	}
	defer s.Close()
	return s.Info()
}

// mappedLibrary returns the path of the library as a process has it mapped, or "".
func mappedLibrary(pid int) string {
	return mappedFile(procOf(pid), func(base string) bool { return base == launch.LibraryName })
}

// sameFiles reports whether a path means the same to a process as here; if that cannot be known, it is taken to.
func sameFiles(pid int) bool {
	ours, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return true
	}
	theirs, err := os.Readlink(filepath.Join(procOf(pid), "ns", "mnt"))
	root, rootErr := os.Readlink(filepath.Join(procOf(pid), "root"))
	return (err != nil || ours == theirs) && (rootErr != nil || root == "/")
}

// mappedFile returns the path of a file that a process has mapped, chosen by its base name; or "".
func mappedFile(proc string, is func(base string) bool) string {
	text, err := os.ReadFile(filepath.Join(proc, "maps"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if at := strings.IndexByte(line, '/'); at >= 0 {
			if path := strings.TrimSuffix(line[at:], "\n"); is(filepath.Base(path)) {
				return path
			}
		}
	}
	return ""
}
