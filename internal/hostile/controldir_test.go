package hostile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A user's folder of control sockets: the library makes it, the command finds the socket by the process's environment,
// and a view that is given the folder shows the processes that belong there alone.
func TestControlFolder(t *testing.T) {
	program := compile(t, "attached", []string{"testdata/guest/attached.c"}, withDriver(t)...)
	folder := filepath.Join(t.TempDir(), "sockets")
	a := startProgram(t, program, run{preload: []string{""}}, []string{"MEMTRACE_CONTROL_DIR=" + folder}, "quiet")
	a.do(t, "alloc 3 5001")
	if said := a.well(t, "ctl", a.pid(), "status"); !strings.Contains(said, "is recorded in") {
		t.Errorf("it says %q", said)
	}
	path := filepath.Join(folder, a.pid()+".sock")
	for name, want := range map[string]os.FileMode{folder: os.ModeDir | 0o700, path: os.ModeSocket | 0o600} {
		if info, err := os.Lstat(name); err != nil {
			t.Error(err)
		} else if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
		}
	}
	if others := a.sockets(t); others != nil {
		t.Errorf("it has sockets elsewhere: %v", others)
	}
	listed := func(in string, args ...string) bool {
		t.Setenv("MEMTRACE_CONTROL_DIR", in)
		return strings.Contains(a.well(t, append([]string{"top", "--json"}, args...)...), `"pid": `+a.pid())
	}
	other := t.TempDir()
	if !listed(folder) || !listed("") || listed(other) {
		t.Error("it is not shown where it belongs alone")
	}
	if !listed(other, "--pid", a.pid()) || !listed(other, a.dir) {
		t.Error("who is named is not shown")
	}
	t.Setenv("MEMTRACE_CONTROL_DIR", "")
	a.end(t)
	if _, err := os.Lstat(path); err == nil {
		t.Error("it leaves its socket")
	}
}

// In a folder that others may write to, they could take a socket's name: the program is recorded, without a socket. The
// user is warned once.
func TestControlFolderOfEverybody(t *testing.T) {
	program := compile(t, "attached", []string{"testdata/guest/attached.c"}, withDriver(t)...)
	for name, makeFolder := range map[string]func(path string) error{
		"open to others": func(path string) error {
			if err := os.Mkdir(path, 0o700); err != nil {
				return err
			}
			return os.Chmod(path, 0o777)
		},
		"a file":     func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a link":     func(path string) error { return os.Symlink("/tmp", path) },
		"in nothing": func(path string) error { return os.Remove(filepath.Dir(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "above", "sockets")
			if err := os.Mkdir(filepath.Dir(folder), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := makeFolder(folder); err != nil {
				t.Fatal(err)
			}
			a := startProgram(t, program, run{preload: []string{""}}, []string{"MEMTRACE_CONTROL_DIR=" + folder},
				"quiet")
			a.do(t, "alloc 3 5001")
			a.do(t, "end")
			a.ended = true
			if err := a.cmd.Wait(); err != nil {
				t.Error(err)
			}
			if said := a.errors.String(); strings.Count(said, "\n") != 1 ||
				!strings.Contains(said, "MEMTRACE_CONTROL_DIR="+folder+" cannot be made") {
				t.Errorf("it says %q", said)
			}
			a.sizes(t, map[uint64]int{5001: 3})
		})
	}
}
