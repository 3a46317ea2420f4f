package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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

// answerLater opens this process's control socket after a while, and answers one request.
func answerLater(t *testing.T, after time.Duration, answer string) {
	t.Helper()
	folder := fmt.Sprintf("/tmp/memtrace-%d", os.Geteuid())
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, fmt.Sprintf("%d.sock", os.Getpid()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(after)
		os.Remove(path) // an earlier process of this number may have been killed
		listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
		if err != nil {
			t.Error(err)
			return
		}
		defer listener.Close()
		listener.SetDeadline(time.Now().Add(10 * time.Second)) // where nobody asks
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
	t.Cleanup(func() { <-done })
}

// The library opens its socket once its runtime has started: a request that comes before waits for it.
func TestControlWaitsForASocket(t *testing.T) {
	mapLibrary(t)
	answerLater(t, 50*time.Millisecond, "state=recording\ntrace=/a/b.bin")
	answer, err := new(app).recorder().Ask(os.Getpid(), "status")
	if err != nil || answer.Trace != "/a/b.bin" {
		t.Errorf("%+v, %v", answer, err)
	}
}

// Without the library there is nothing to wait for.
func TestControlOfAProcessWithoutTheLibrary(t *testing.T) {
	_, err := new(app).recorder().Ask(os.Getpid(), "status")
	if err == nil || !strings.Contains(err.Error(), "memtrace attach") {
		t.Errorf("%v", err)
	}
}
