package main

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// progressOutput runs use on a progress that writes into a file as if that were a terminal, and returns what was
// written.
func progressOutput(t *testing.T, total int64, next time.Time, use func(*progress)) string {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "terminal"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p := &progress{out: out, name: "big.bin", total: total, next: next, bar: new(atomic.Pointer[progress])}
	use(p)
	p.finish()
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestProgressShowsAndClears(t *testing.T) {
	due := time.Now().Add(-time.Hour)
	got := progressOutput(t, 4<<20, due, func(p *progress) {
		p.update(1 << 20)
		p.next = time.Now().Add(time.Hour) // too soon for another picture
		p.update(2 << 20)
	})
	if want := "\r\x1b[Kreading big.bin:  25 %, 1.0 of 4.0 MiB\r\x1b[K"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got = progressOutput(t, -1, due, func(p *progress) { p.update(3 << 20) })
	if want := "\r\x1b[Kreading big.bin: 3.0 MiB\r\x1b[K"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := progressOutput(t, 4<<20, time.Now().Add(time.Hour), func(p *progress) { p.update(1 << 20) }); got != "" {
		t.Errorf("quick work shows %q", got)
	}
}

func TestProgressIsForTerminalsOnly(t *testing.T) {
	notTerminal, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer notTerminal.Close()
	a := newApp(os.Stdin, os.Stdout, notTerminal)
	if p := a.newProgress("x", 1); p.out != nil {
		t.Error("progress would be written into a file")
	}
	_, terminal := openTerminal(t)
	a.stderr = terminal
	if p := a.newProgress("x", 1); p.out != terminal {
		t.Error("no progress on a terminal")
	}
	a.quiet = true
	if p := a.newProgress("x", 1); p.out != nil {
		t.Error("progress in spite of -q")
	}
}

// TestProgressOfOne: of two traces that are read at the same time the first one that takes long is shown, the other one
// once that is done.
func TestProgressOfOne(t *testing.T) {
	due := time.Now().Add(-time.Hour)
	got := progressOutput(t, 0, due, func(first *progress) {
		second := &progress{out: first.out, name: "other.bin", next: due, bar: first.bar}
		first.update(1 << 20)
		second.update(2 << 20)
		first.finish()
		second.next, first.drawn = due, false
		second.update(3 << 20)
		second.finish()
	})
	if want := "\r\x1b[Kreading big.bin: 1.0 MiB\r\x1b[K\r\x1b[Kreading other.bin: 3.0 MiB\r\x1b[K"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
