package main

import (
	"encoding/json"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"memtrace/analyzer/report"
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

// The second of two runs with -f -o t.bin left a text of the first beside a trace in which memory never ran out, and
// called its own t.bin.oom.2.txt. What somebody else put at such a name stays.
func TestOOMFilesOfTheRunBefore(t *testing.T) {
	folder := t.TempDir()
	trace, other := filepath.Join(folder, "t.bin"), filepath.Join(folder, "of another", "t.bin")
	if err := os.Mkdir(filepath.Dir(other), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(trace string) {
		t.Helper()
		found := &report.OOMReport{Event: report.OOMEvent{RequestedBytes: 1 << 20, Memory: "device",
			Outcome: report.OOMFailed}}
		if _, err := new(oomReporter).writeOOMReport(trace, found); err != nil {
			t.Fatal(err)
		}
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(trace)
	write(trace) // as a numbered trace of the same name does
	put("t.bin.oom.3.txt", "Out of memory on device 0: my notes\n")
	put("t.bin.oom.3.json", "{}")
	put("t.bin.oom.4.json", jsonHead+"]}\n")
	write(other)
	if err := os.Rename(other+".oom.1.txt", trace+".oom.4.txt"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("t.bin.oom.3.json", trace+".oom.5.txt"); err != nil {
		t.Fatal(err)
	}
	write(trace) // number 6
	put("t.bin.oom.8.json", jsonHead+"]}\n")
	removeOOMFiles(trace, uint64(os.Getuid())+1)
	if left, _ := filepath.Glob(trace + ".oom.*"); len(left) != 12 {
		t.Fatalf("as another user: %v", left)
	}
	removeOOMFiles(trace, uint64(os.Getuid()))
	left, err := filepath.Glob(trace + ".oom.*")
	if err != nil {
		t.Fatal(err)
	}
	for i := range left {
		left[i] = strings.TrimPrefix(left[i], trace+".oom.")
	}
	if got := strings.Join(left, " "); got != "3.json 3.txt 4.txt 5.txt 8.json" {
		t.Errorf("left: %s", got)
	}
	write(trace)
	if _, err := os.Stat(trace + ".oom.1.txt"); err != nil {
		t.Error(err)
	}
}
