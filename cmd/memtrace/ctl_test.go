package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"memtrace/internal/control"
	"memtrace/internal/launch"
)

// mapLibrary maps a file of the library's name into this process, as a program has it that was just started.
func mapLibrary(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), launch.LibraryName)
	if err := os.WriteFile(path, make([]byte, os.Getpagesize()), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	mapped, err := unix.Mmap(int(file.Fd()), 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mapped) })
}

// leaveSocket creates a socket of this process's name without a listener, so old that a client removes it.
func leaveSocket(t *testing.T) (path string) {
	t.Helper()
	folder := t.TempDir()
	t.Setenv(control.FolderVariable, folder)
	path = filepath.Join(folder, fmt.Sprintf("%d.sock", os.Getpid()))
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	return path
}

// answerLater opens this process's control socket once a client has looked for it, and answers one request.
func answerLater(t *testing.T, path, answer string) {
	t.Helper()
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		for {
			if _, err := os.Lstat(path); err != nil {
				break // the first look has removed it
			}
			time.Sleep(time.Millisecond)
		}
		listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
		if err != nil {
			t.Error(err)
			return
		}
		defer listener.Close()
		connection, err := listener.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer connection.Close()
		if _, err := connection.Read(make([]byte, 100)); err != nil {
			t.Error(err)
		}
		if _, err := connection.Write([]byte(answer)); err != nil {
			t.Error(err)
		}
	}()
}

// The library opens its socket once its runtime has started: a request that comes before waits for it.
func TestControlWaitsForASocket(t *testing.T) {
	mapLibrary(t)
	answerLater(t, leaveSocket(t), "state=recording\ntrace=/a/b.bin")
	answer, err := new(app).recorder().Request(os.Getpid(), "status")
	if err != nil || answer.Trace != "/a/b.bin" {
		t.Errorf("%+v, %v", answer, err)
	}
}

// Without the library there is nothing to wait for, and without CUDA nothing to attach to.
func TestControlOfAProcessWithoutTheLibrary(t *testing.T) {
	_, err := new(app).recorder().Request(os.Getpid(), "status")
	if err == nil || !strings.Contains(err.Error(), "neither CUDA nor Python") {
		t.Errorf("%v", err)
	}
}

// The commands that list or ask processes remove the sockets of killed ones.
func TestCommandsRemoveOldSockets(t *testing.T) {
	for _, args := range [][]string{{"ctl", "2147483647", "status"}, {"top", "--once"}} {
		ended := exec.Command("true")
		if err := ended.Run(); err != nil {
			t.Fatal(err)
		}
		own := leaveSocket(t)
		old := filepath.Join(filepath.Dir(own), fmt.Sprintf("%d.sock", ended.Process.Pid))
		if err := os.Rename(own, old); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Dir(old), 0o700); err != nil {
			t.Fatal(err)
		}
		execute(t, args)
		if _, err := os.Lstat(old); err == nil {
			t.Errorf("%v leaves the socket of a process that has ended", args)
		}
	}
}
