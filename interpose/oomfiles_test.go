package main

import (
	"encoding/json"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// limitFiles makes files of this process end at a size, as a full disk does, until the test is over.
func limitFiles(t *testing.T, size uint64) {
	t.Helper()
	signal.Ignore(unix.SIGXFSZ)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
			t.Fatal(err)
		}
		signal.Reset(unix.SIGXFSZ)
	})
}

// TestOOMFilesOnAFullDisk: where the disk is full half way through an event or what came after it, both files stay as
// they were, and the JSON stays whole.
func TestOOMFilesOnAFullDisk(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace.bin")
	var files oomFiles
	if _, err := files.write(trace, []byte("once"), `{"n":1}`); err != nil {
		t.Fatal(err)
	}
	if err := files.writeAfter([]byte("after"), `{"after":1}`); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(trace + ".oom.1." + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	text, events := read("txt"), read("json")
	long := strings.Repeat("x", 4096)
	for _, room := range []int{0, 1, 20, 300} {
		limitFiles(t, uint64(len(events)+room))
		if _, err := files.write(trace, []byte(long), `{"long":"`+long+`"}`); err == nil {
			t.Errorf("room for %d bytes: the text was written", room)
		}
		_ = files.json.add(",\n"+long+files.tail(), files.tail())
		if err := files.writeAfter([]byte(long), `{"long":"`+long+`"}`); err == nil {
			t.Errorf("room for %d bytes: what came after was written", room)
		}
		if now := read("json"); now != events || !json.Valid([]byte(now)) {
			t.Errorf("room for %d bytes: the JSON is %.200q, was %q", room, now, events)
		}
		if now := read("txt"); now != text {
			t.Errorf("room for %d bytes: the text is %.200q, was %q", room, now, text)
		}
	}
}
