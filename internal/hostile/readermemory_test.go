package hostile

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"memtrace/cuda"
	"memtrace/trace"
)

// writeHoard writes a trace of so many blocks of the driver that are never freed.
func writeHoard(t *testing.T, blocks int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), fmt.Sprintf("memtrace.hoard.%d.bin", blocks))
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := trace.NewWriter(file, trace.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events := make([]trace.Event, 1000)
	for n := 0; n < blocks; n += len(events) {
		for i := range events {
			k := uint64(n + i)
			events[i] = trace.Event{Kind: trace.EventAlloc, Seq: k + 1, Time: int64(k) * 1000, Level: cuda.LevelDriver,
				Mem: cuda.MemoryDevice, Addr: 0x7f0000000000 + k*512, Size: 512, Thread: 1, Handle: 0x1000,
				Stack: trace.StackID(1 + k%100)}
		}
		if err := w.WriteEvents(events); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(trace.End{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// peakOf runs the command and returns the most memory that it had, in bytes.
func peakOf(t *testing.T, args ...string) int64 {
	t.Helper()
	cmd := exec.Command(command(t), append([]string{"-q"}, args...)...)
	cmd.Dir, cmd.Stderr = t.TempDir(), os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
}

// A report on five million live blocks took 2.2 GB, and a page 3.7 GB. A live block more is a hundred bytes more at
// most, of all that the process has: see TestLiveBlockIsSmall for what they are. When the collector runs depends on the
// load, and moves each peak by some 20 MiB: so many blocks make that 5 bytes for each.
func TestReaderOfManyLiveBlocks(t *testing.T) {
	if testing.Short() {
		t.Skip("reads six million events with each verb; TestLiveBlockIsSmall holds what a block takes")
	}
	const few, many, most = 1_000_000, 5_000_000, 100
	small, large := writeHoard(t, few), writeHoard(t, many)
	for name, args := range map[string][]string{"report": {"report", "--json"}, "html": {"html", "-o", "page.html"},
		"diff": {"diff", small}, "export": {"export", "pprof", "-o", "stacks.pb.gz"},
		"compact": {"compact", "-o", "copy.bin"}} {
		t.Run(name, func(t *testing.T) {
			first, second := peakOf(t, append(args, small)...), peakOf(t, append(args, large)...)
			each := float64(second-first) / (many - few)
			if each > most {
				t.Errorf("%.1f bytes for a live block, more than %d", each, most)
			}
			t.Logf("%d MiB, %d MiB: %.1f bytes for a live block", first>>20, second>>20, each)
		})
	}
}
