package top

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"memtrace/internal/control"
	"memtrace/internal/spool"
)

// rescan is how long a process that was not recorded is assumed to stay so: reading a process's memory map holds a lock
// that its threads need to map memory.
const rescan = 3 * time.Second

// mapsLine bounds a line of /proc/PID/maps: the longest path that Linux accepts, escaped, after the numbers.
const mapsLine = 64 << 10

// recordingKey identifies a process for as long as the machine runs: a pid alone is reused.
type recordingKey struct {
	pid   int
	start uint64 // ticks since boot
}

// found is a recorded process that runs.
type found struct {
	key       recordingKey
	trace     string // as its user calls it; "" if it was not found
	tracePath string // as this process must open it: another mount namespace is below /proc/PID/root
	spoolPath string
	problem   string // why it cannot be read
}

func (f *found) name() string {
	if f.trace != "" {
		return f.trace
	}
	return f.spoolPath
}

// complete reports whether nothing is left to be found.
func (f *found) complete() bool { return f.problem == "" && f.tracePath != "" }

// finder finds the processes that memtrace records: by the spool that each of them has mapped, and in folders and
// files that the user names. Where the user names a folder of control sockets, only processes that belong there are
// looked for, but any that is named itself is shown.
type finder struct {
	host   *Host
	args   []string
	pids   []int  // the only ones to inspect; none: all
	folder string // of the control sockets of all others; "": anywhere
	proc   string // "/proc"
	known  map[recordingKey]found
	looked map[recordingKey]time.Time // when a process was last inspected in vain
}

func newFinder(host *Host, args []string) *finder {
	return &finder{host: host, args: args, folder: control.Folder(), proc: "/proc", known: make(map[recordingKey]found),
		looked: make(map[recordingKey]time.Time)}
}

// find returns the recorded processes that run now.
func (t *finder) find(now time.Time) []found {
	running := t.running()
	for key := range t.known {
		if !running[key] {
			delete(t.known, key)
		}
	}
	for key := range t.looked {
		if !running[key] {
			delete(t.looked, key)
		}
	}
	for key := range running {
		if f, known := t.known[key]; known && f.complete() || now.Sub(t.looked[key]) < rescan {
			continue
		}
		t.looked[key] = now
		if f, ok := t.inspect(key); ok {
			t.known[key] = f
		}
	}
	t.addNamed(running)
	list := make([]found, 0, len(t.known))
	for _, f := range t.known {
		list = append(list, f)
	}
	return list
}

// running lists the processes whose memory maps this user may read, but not this one.
func (t *finder) running() map[recordingKey]bool {
	entries, err := os.ReadDir(t.proc)
	if err != nil {
		return nil
	}
	list := make(map[recordingKey]bool, len(entries))
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() || len(t.pids) > 0 && !slices.Contains(t.pids, pid) {
			continue
		}
		if start, ok := processStart(t.proc, pid); ok {
			list[recordingKey{pid, start}] = true
		}
	}
	return list
}

// processStart reads field 22 of /proc/PID/stat; ok is false for a process that is gone or dead.
func processStart(proc string, pid int) (start uint64, ok bool) {
	state, start, ok := spool.ReadStat(filepath.Join(proc, strconv.Itoa(pid)))
	return start, ok && spool.Running(state)
}

// inspect looks for a spool among the files that a process has mapped. A forked child may still have its parent's: the
// spool names its process.
func (t *finder) inspect(key recordingKey) (found, bool) {
	dir := filepath.Join(t.proc, strconv.Itoa(key.pid))
	pids := namespacePIDs(dir, key.pid)
	root := ""
	if !sameMounts(t.proc, dir) {
		root = filepath.Join(dir, "root")
	}
	spools := mappedSpools(dir)
	if len(spools) > 0 && t.folder != "" && len(t.pids) == 0 && !control.InFolder(key.pid, t.folder) {
		return found{}, false
	}
	for _, path := range spools {
		pid, moved, err := lookInto(root + path)
		if err != nil {
			return found{key: key, spoolPath: root + path, problem: t.host.OpenError(path, err).Error()}, true
		}
		if !pids[pid] {
			continue
		}
		found := found{key: key, spoolPath: root + path}
		if trace := t.traceOf(dir, root, path); trace != "" {
			found.trace, found.tracePath = trace, root+trace
		} else if moved {
			found.problem = "its trace was not found, only " + path + "; name the trace: memtrace top FILE"
		}
		return found, true
	}
	return found{}, false
}

// lookInto returns which process a spool is of, and whether records were moved from it to a trace.
func lookInto(path string) (pid int, moved bool, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // the file may be truncated while it is mapped
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%s: %v", path, fault)
		}
	}()
	s, err := spool.Open(path, false)
	if err != nil {
		return 0, false, err
	}
	defer s.Close()
	return s.PID(), s.Moved(), nil
}

// mappedSpools lists the files of /proc/PID/maps that are called like spools, each once.
func mappedSpools(dir string) []string {
	file, err := os.Open(filepath.Join(dir, "maps"))
	if err != nil {
		return nil // gone, or another user's
	}
	defer file.Close()
	var list []string
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 4096), mapsLine)
	for lines.Scan() {
		line := lines.Text()
		at := strings.IndexByte(line, '/')
		if at < 0 || !strings.Contains(line[at:], spool.Extension) {
			continue
		}
		// the only character that the kernel escapes here
		path := strings.ReplaceAll(line[at:], `\012`, "\n")
		// not "... (deleted)": an ended parent's
		if strings.HasSuffix(path, spool.Extension) && !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	return list
}

// namespacePIDs returns the numbers that a process has in its pid namespaces.
func namespacePIDs(dir string, pid int) map[int]bool {
	pids := map[int]bool{pid: true}
	text, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return pids
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "NSpid:"); ok {
			for _, field := range strings.Fields(rest) {
				if n, err := strconv.Atoi(field); err == nil {
					pids[n] = true
				}
			}
		}
	}
	return pids
}

// sameMounts reports whether a process sees the same file systems as this one; if that cannot be known, it is taken to.
func sameMounts(proc, dir string) bool {
	ours, err := os.Readlink(filepath.Join(proc, "self", "ns", "mnt"))
	if err != nil {
		return true
	}
	theirs, err := os.Readlink(filepath.Join(dir, "ns", "mnt"))
	return err != nil || ours == theirs
}

// traceOf returns the trace that a spool belongs to, "" if it is not found: the file beside it, or with
// MEMTRACE_SPOOL_DIR the one that the drainer has open and that has a link to the spool beside it. The drainer's
// threads have descriptors of their own.
func (t *finder) traceOf(dir, root, spoolPath string) string {
	target, err := os.Stat(root + spoolPath)
	if err != nil {
		return ""
	}
	if beside := strings.TrimSuffix(spoolPath, spool.Extension); isTraceOf(root, beside, target) {
		return beside
	}
	tables, _ := filepath.Glob(filepath.Join(dir, "task", "*", "fd"))
	for _, table := range tables {
		entries, err := os.ReadDir(table)
		if err != nil {
			continue
		}
		for _, entry := range entries {
			path, err := os.Readlink(filepath.Join(table, entry.Name()))
			if err == nil && strings.HasPrefix(path, "/") && isTraceOf(root, path, target) {
				return path
			}
		}
	}
	return ""
}

func isTraceOf(root, path string, target os.FileInfo) bool {
	if info, err := os.Stat(root + path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	info, err := resolve(root, path+spool.Extension)
	return err == nil && os.SameFile(info, target)
}

// resolve resolves a file below another root, following one link there: a link's target is relative to that root.
func resolve(root, path string) (os.FileInfo, error) {
	if link, err := os.Readlink(root + path); err == nil && filepath.IsAbs(link) {
		return os.Stat(root + link)
	}
	return os.Stat(root + path)
}

// addNamed adds the processes of the traces and folders that the user named, which may be another user's.
func (t *finder) addNamed(running map[recordingKey]bool) {
	for _, arg := range t.args {
		paths, err := t.host.Traces(arg)
		if err != nil {
			continue // an empty folder may fill
		}
		for _, path := range paths {
			t.addTrace(strings.TrimSuffix(path, spool.Extension), running)
		}
	}
}

func (t *finder) addTrace(path string, running map[recordingKey]bool) {
	s, err := spool.Open(path+spool.Extension, false)
	if err != nil {
		return // ended, or no recording
	}
	defer s.Close()
	start, ok := processStart(t.proc, s.PID())
	key := recordingKey{s.PID(), start}
	if !ok || !s.Alive() || !running[key] {
		return
	}
	if f, known := t.known[key]; known && f.complete() {
		return
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		absolute = path
	}
	t.known[key] = found{key: key, trace: absolute, tracePath: absolute, spoolPath: absolute + spool.Extension}
}
