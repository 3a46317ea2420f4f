package cli

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// progressOutput runs use on a progress that writes into a file as if that were a terminal, and returns what was
// written.
func progressOutput(t *testing.T, total int64, next time.Time, use func(*Progress)) string {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "terminal"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p := &Progress{out: out, name: "big.bin", total: total, next: next, bar: new(atomic.Pointer[Progress])}
	use(p)
	p.Finish()
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestProgressShowsAndClears(t *testing.T) {
	due := time.Now().Add(-time.Hour)
	got := progressOutput(t, 4<<20, due, func(p *Progress) {
		p.Update(1 << 20)
		p.next = time.Now().Add(time.Hour) // too soon for another picture
		p.Update(2 << 20)
	})
	if want := "\r\x1b[Kreading big.bin:  25 %, 1.0 of 4.0 MiB\r\x1b[K"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got = progressOutput(t, -1, due, func(p *Progress) { p.Update(3 << 20) })
	if want := "\r\x1b[Kreading big.bin: 3.0 MiB\r\x1b[K"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := progressOutput(t, 4<<20, time.Now().Add(time.Hour), func(p *Progress) { p.Update(1 << 20) }); got != "" {
		t.Errorf("quick work shows %q", got)
	}
}

func TestProgressIsForTerminalsOnly(t *testing.T) {
	notTerminal, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer notTerminal.Close()
	a := NewConsole(os.Stdin, os.Stdout, notTerminal)
	if p := a.NewProgress("x", 1); p.out != nil {
		t.Error("progress would be written into a file")
	}
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	a.Stderr = terminal
	if p := a.NewProgress("x", 1); p.out != terminal {
		t.Error("no progress on a terminal")
	}
	a.Quiet = true
	if p := a.NewProgress("x", 1); p.out != nil {
		t.Error("progress in spite of -q")
	}
}

// TestProgressOfOne: of two traces that are read at the same time the first one that takes long is shown, the other one
// once that is done.
func TestProgressOfOne(t *testing.T) {
	due := time.Now().Add(-time.Hour)
	got := progressOutput(t, 0, due, func(first *Progress) {
		second := &Progress{out: first.out, name: "other.bin", next: due, bar: first.bar}
		first.Update(1 << 20)
		second.Update(2 << 20)
		first.Finish()
		second.next, first.drawn = due, false
		second.Update(3 << 20)
		second.Finish()
	})
	if want := "\r\x1b[Kreading big.bin: 1.0 MiB\r\x1b[K\r\x1b[Kreading other.bin: 3.0 MiB\r\x1b[K"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
