package control

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/guest"
)

// child starts a process with a variable of its own that waits until the test ends.
func child(t *testing.T, env string) int {
	t.Helper()
	cmd := exec.Command("sh", "-c", "echo up; read line")
	cmd.Env = append(os.Environ(), env)
	guest.Running(t, cmd) // its environment is in place
	return cmd.Process.Pid
}

// A process's socket is found in the folder that its own environment names, whatever this one's is.
func TestFolderOfTheProcess(t *testing.T) {
	folder := t.TempDir()
	pid := child(t, FolderVariable+"="+folder)
	want := filepath.Join(folder, fmt.Sprintf("%d.sock", pid))
	if got := sockets(pid); len(got) == 0 || got[0] != want {
		t.Errorf("%q, want %q first", got, want)
	}
	if !InFolder(pid, folder) || InFolder(pid, t.TempDir()) {
		t.Error("it is not where its environment says alone")
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil || !InFolder(pid, link) {
		t.Errorf("under another name of the folder it is not found: %v", err)
	}
	gone := filepath.Join(folder, "not", "made")
	if later := child(t, FolderVariable+"="+gone); !InFolder(later, gone) || InFolder(later, folder) {
		t.Error("a folder that the process has not made yet is another")
	}
}

// Where the environment of a process does not hold it, the command's own does: the socket is there.
func TestFolderOfTheCommand(t *testing.T) {
	t.Setenv(FolderVariable, t.TempDir())
	own := os.Getpid()
	if _, err := Request(own, "status"); !errors.Is(err, ErrNoSocket) || InFolder(own, Folder()) {
		t.Errorf("in an empty folder: %v", err)
	}
	serveAt(t, filepath.Join(Folder(), fmt.Sprintf("%d.sock", own)), says("state=recording"))
	if answer, err := Request(own, "status"); err != nil || answer.State != Recording || !InFolder(own, Folder()) {
		t.Errorf("%+v, %v", answer, err)
	}
}

// A container's folder below /proc/PID/root may have more bytes than a socket's name.
func TestLongFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), strings.Repeat("a", 120))
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join("/tmp", fmt.Sprintf("memtrace-long-%d", os.Getpid()))
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(link) })
	name := fmt.Sprintf("%d.sock", os.Getpid())
	serveAt(t, filepath.Join(link, name), says("state=asleep"))
	os.Remove(link) // else it is found below /tmp
	t.Setenv(FolderVariable, folder)
	if answer, err := Request(os.Getpid(), "status"); err != nil || answer.State != Asleep {
		t.Errorf("%+v, %v", answer, err)
	}
}

// A process's environment may name what is not a folder: that is not waited for.
func TestFolderThatIsNone(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if out, err := exec.Command("mkfifo", pipe).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, folder := range []string{pipe, "relative", "", "/gone"} {
		if _, err := Request(child(t, FolderVariable+"="+folder), "status"); !errors.Is(err, ErrNoSocket) {
			t.Errorf("%q: %v", folder, err)
		}
	}
}
