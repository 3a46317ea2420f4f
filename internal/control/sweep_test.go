package control

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// endedProcess is the number of a process that has ended.
func endedProcess(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// leave makes a socket as a killed process leaves it, of the given age.
func leave(t *testing.T, path string, age time.Duration) {
	t.Helper()
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
	aged(t, path, age)
}

func aged(t *testing.T, path string, age time.Duration) {
	t.Helper()
	then := time.Now().Add(-age)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
}

// Sockets of killed programs were never removed: 1,968 on one machine. Those of processes that are gone are, and
// nothing else: not what a process listens at, of whatever number, nor what just begins, nor other files.
func TestSweepRemovesWhatKilledProcessesLeft(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	gone, young, heard := endedProcess(t), endedProcess(t), endedProcess(t)
	running := fmt.Sprintf("%d.sock", os.Getpid())
	leave(t, at(fmt.Sprintf("%d.sock", gone)), 2*youngest)
	leave(t, at(fmt.Sprintf("%d.sock", young)), 0)
	leave(t, at("other.sock"), 2*youngest)
	leave(t, at(running), 2*youngest)                       // its process may be about to listen again
	serveAt(t, at(fmt.Sprintf("%d.sock", heard)), says("")) // in a container whose numbers are others
	aged(t, at(fmt.Sprintf("%d.sock", heard)), 2*youngest)
	if err := os.WriteFile(at("2147483646.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	aged(t, at("2147483646.sock"), 2*youngest)
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	sweep(folder)
	if _, err := os.Lstat(at(fmt.Sprintf("%d.sock", gone))); err != nil {
		t.Errorf("a folder that others may write to is swept: %v", err)
	}
	if err := os.Chmod(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	sweep(folder)
	want := []string{fmt.Sprintf("%d.sock", young), fmt.Sprintf("%d.sock", heard), "other.sock", running,
		"2147483646.sock"}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !slices.Contains(want, entry.Name()) {
			t.Errorf("%s is left", entry.Name())
		}
	}
	if len(entries) < len(want) {
		t.Errorf("%v is left, want %v", entries, want)
	}
}

// A new process of the same number may have made its socket since the old one was looked at: it keeps its name.
func TestSweepLeavesANewSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "1.sock")
	leave(t, path, 2*youngest)
	old, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(path)
	serveAt(t, path, says("state=recording"))
	removeSame(path, old)
	if connection, err := connect(path); err != nil {
		t.Errorf("the new socket is gone: %v", err)
	} else {
		connection.Close()
	}
}
