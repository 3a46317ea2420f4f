package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"memtrace/internal/safefile"
)

// ManifestEnv names the folder in which each recorded process drops one small file per trace: the trace's absolute path
// and a newline. The file is called PID.N, N counting the traces of the process.
const ManifestEnv = "MEMTRACE_RUN_DIR"

// manifestEntryLimit bounds what is read of one entry: the longest path that Linux accepts, and its newline.
const manifestEntryLimit = 4096 + 1

// Manifest is the folder in which one run finds the traces that its process tree wrote.
type Manifest struct {
	Dir string
}

// NewManifest makes the folder; the caller removes it.
func NewManifest() (*Manifest, error) {
	dir, err := os.MkdirTemp("", "memtrace-run-")
	if err != nil {
		return nil, fmt.Errorf(
			"make a folder for the run's list of traces: %w; set TMPDIR to a folder that can be written",
			err)
	}
	return &Manifest{Dir: dir}, nil
}

// NullAccount is where the processes of the run that use the null GPU keep its account. It is no entry.
func (m *Manifest) NullAccount() string { return filepath.Join(m.Dir, nullAccount) }

// nullAccount is the name of that file.
const nullAccount = "nullgpu"

// entries are the files of the processes.
func (m *Manifest) entries() ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(m.Dir)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == nullAccount }), err
}

// Remove removes the folder.
func (m *Manifest) Remove() { _ = os.RemoveAll(m.Dir) }

// Traces returns the paths that were dropped, in order of process and number, each once, and an error for each entry
// that cannot be read.
func (m *Manifest) Traces() (paths []string, bad []error) {
	entries, err := m.entries()
	if err != nil {
		return nil, []error{fmt.Errorf("list the run's traces: %w", err)}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int {
		return slices.Compare(manifestOrder(a.Name()), manifestOrder(b.Name()))
	})
	for _, entry := range entries {
		path, err := readManifestEntry(filepath.Join(m.Dir, entry.Name()))
		if err != nil {
			bad = append(bad, err)
			continue
		}
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths, bad
}

// PassOn copies the entries into the folder of an enclosing run, which would otherwise not learn of these traces.
func (m *Manifest) PassOn(outer string) error {
	entries, err := m.entries()
	if err != nil {
		return err
	}
	for _, entry := range entries {
		text, err := safefile.ReadUnlinked(filepath.Join(m.Dir, entry.Name()), manifestEntryLimit)
		if err == nil {
			err = writeManifestEntry(filepath.Join(outer, entry.Name()), text)
		}
		if err != nil {
			return fmt.Errorf("tell the enclosing run: %w", err)
		}
	}
	return nil
}

func writeManifestEntry(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}

// manifestOrder turns PID.N into numbers, so that process 9 comes before process 10. Other names come first.
func manifestOrder(name string) []uint64 {
	pid, n, _ := strings.Cut(name, ".")
	first, _ := strconv.ParseUint(pid, 10, 64)
	second, _ := strconv.ParseUint(n, 10, 64)
	return []uint64{first, second}
}

func readManifestEntry(file string) (string, error) {
	text, err := safefile.ReadUnlinked(file, manifestEntryLimit)
	if err != nil && !errors.Is(err, safefile.ErrTooLarge) {
		return "", fmt.Errorf("read the run's list of traces: %w", err)
	}
	// A process that was killed while it wrote leaves a line without its end.
	path, ok := strings.CutSuffix(string(text), "\n")
	if !ok || !filepath.IsAbs(path) {
		return "", fmt.Errorf(
			"process %s left no whole path in the run's list of traces; look for its trace where the output pattern points", filepath.Base(file))
	}
	return path, nil
}
