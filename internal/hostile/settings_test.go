package hostile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Invalid values were accepted silently: a spool of -1 bytes, a sample every three million years. Each setting is
// reported once, in one line with its value and what is used instead, and the recording goes on.
func TestInvalidSettings(t *testing.T) {
	t.Parallel()
	for setting, used := range map[string]string{
		"MEMTRACE_SPOOL_MAX=-1": "64M is used", "MEMTRACE_SPOOL_MAX=7x": "64M is used",
		"MEMTRACE_SPOOL_MAX=99999999999999999999": "64M is used", "MEMTRACE_NVML=99999999999999": "3600 is used",
		"MEMTRACE_LOG=bogus": "warn is used", "MEMTRACE_STACKS=bogus": "no effect",
		"MEMTRACE_ADAPTERS=bogus": "no effect", "MEMTRACE_OOM=bogus": "it is on", "MEMTRACE_OUTPT": "no effect",
	} {
		t.Run(setting, func(t *testing.T) {
			value := setting
			if !strings.Contains(setting, "=") {
				value += "=x"
			}
			got := run{program: endings(t), args: []string{"plain"}, env: []string{value}}.both(t, setting)
			lines := strings.Split(strings.TrimSuffix(got.stderr, "\n"), "\n")
			if len(lines) != 1 || !strings.Contains(lines[0], setting+" ") || !strings.Contains(lines[0], used) {
				t.Errorf("said:\n%s", got.stderr)
			}
			if n := got.only(t).allocations(firstSize); n != 100 {
				t.Errorf("%d of 100 allocations", n)
			}
		})
	}
}

// Each child that was the first of its family to record named it again: a server that forks a hundred workers did so a
// hundred times.
func TestInvalidSettingsOnce(t *testing.T) {
	t.Parallel()
	settings := []string{"MEMTRACE_SPOOL_MAX=-1", "MEMTRACE_NVML=99999999999999", "MEMTRACE_OUTPT=x"}
	for _, mode := range []string{"hundred", "threads", "race", "forks", "forks-parallel", "vfork", "spawn"} {
		t.Run(mode, func(t *testing.T) {
			got := run{program: endings(t), args: []string{mode}, env: settings}.both(t, "MEMTRACE_")
			for _, setting := range []string{settings[0], settings[1], "MEMTRACE_OUTPT"} {
				if n := strings.Count(got.stderr, "memtrace: "+setting+" "); n != 1 {
					t.Errorf("%s is named %d times:\n%s", setting, n, got.stderr)
				}
			}
		})
	}
}

// MEMTRACE_OUTPUT=/dev/null wrote /dev/null.1, and a folder's name the same beside it.
func TestOutputThatIsNoFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/dev/null", "/dev/stdout", folder, pipe} {
		for _, force := range []string{"MEMTRACE_FORCE=0", "MEMTRACE_FORCE=1"} {
			got := run{program: endings(t), args: []string{"plain"}, env: []string{"MEMTRACE_OUTPUT=" + path,
				force}}.both(t, "memtrace: ")
			if strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, "a trace is a file") {
				t.Errorf("%s, %s: said\n%s", path, force, got.stderr)
			}
			if left, _ := filepath.Glob(path + ".*"); len(left) != 0 {
				t.Errorf("%s, %s: left %v", path, force, left)
			}
			if _, err := os.Lstat(path); err != nil {
				t.Error(err)
			}
		}
	}
}
