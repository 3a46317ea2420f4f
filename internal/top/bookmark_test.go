package top

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"memtrace/cuda"
	"memtrace/trace"
)

// growingTrace writes the trace of a program that runs.
type growingTrace struct {
	t    *testing.T
	path string
	file *os.File
	w    *trace.Writer
	seq  uint64
}

func newGrowingTrace(t *testing.T, path string) *growingTrace {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	w, err := trace.NewWriter(file, trace.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &growingTrace{t, path, file, w, 0}
}

// record adds so many events: of two blocks in three of a size, one is freed.
func (g *growingTrace) record(events int, size uint64) {
	g.t.Helper()
	list := make([]trace.Event, 0, events)
	for range events {
		g.seq++
		e := trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelDriver, Mem: cuda.MemoryDevice, Thread: 1, Seq: g.seq,
			Time: int64(g.seq) * 1000, Addr: 512 * (1 + g.seq%97), Size: size}
		if g.seq/97%2 == 1 && g.seq%97 > 3 {
			e.Kind = trace.EventFree
		}
		list = append(list, e)
	}
	if err := g.w.WriteEvents(list); err != nil {
		g.t.Fatal(err)
	}
	if err := g.w.Flush(g.seq); err != nil {
		g.t.Fatal(err)
	}
}

// spoil changes a byte of the first block of events.
func (g *growingTrace) spoil() {
	g.t.Helper()
	content, err := os.ReadFile(g.path)
	if err != nil {
		g.t.Fatal(err)
	}
	for at := 2000; at < 2600; at++ { // more than can be restored
		content[at] ^= 0x55
	}
	if _, err := g.file.WriteAt(content[2000:2600], 2000); err != nil {
		g.t.Fatal(err)
	}
}

// lookAt is what a view shows of a trace that begins now, with a folder of bookmarks.
func lookAt(t *testing.T, path, folder string) string {
	t.Helper()
	host := *testHost
	host.Bookmarks = folder
	r := newReader(&host, found{tracePath: path, trace: path}, "", false)
	<-r.advance()
	defer r.close()
	owners, problem, _ := r.state()
	if problem != "" || owners == nil {
		t.Fatal(problem)
	}
	owners.ReadAt = time.Time{}
	text, err := json.Marshal(struct {
		*ownership
		Heights, Peak any
	}{owners, owners.heights, owners.peak})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func init() { bookmarkEvents = 1 << 17 }

// TestLooksGoOn: a view that begins shows of a program that runs what one would that read its whole trace, and does not
// read again what an earlier one has: it does not notice what became of that since. Of another trace under the same
// name, or with a bookmark that is damaged, it reads all.
func TestLooksGoOn(t *testing.T) {
	path, folder := filepath.Join(t.TempDir(), "r.bin"), filepath.Join(t.TempDir(), "kept")
	g := newGrowingTrace(t, path)
	g.record(int(bookmarkEvents)+7, 4096)
	if got, want := lookAt(t, path, folder), lookAt(t, path, ""); got != want {
		t.Errorf("the first look:\n%s, want\n%s", got, want)
	}
	kept, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept: %v, %v", kept, err)
	}
	g.record(1000, 8192)
	want := lookAt(t, path, "")
	if got := lookAt(t, path, folder); got != want {
		t.Errorf("the second look:\n%s, want\n%s", got, want)
	}
	g.spoil()
	if got := lookAt(t, path, folder); got != want {
		t.Errorf("it read what was read before:\n%s, want\n%s", got, want)
	}
	spoiled := lookAt(t, path, "")
	if spoiled == want {
		t.Fatal("the damage does not show")
	}
	content, err := os.ReadFile(kept[0])
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(content)
	flipped[len(content)/2] ^= 1
	for _, damaged := range [][]byte{nil, content[:len(content)/2], flipped} {
		if err := os.WriteFile(kept[0], damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := lookAt(t, path, folder); got != spoiled {
			t.Errorf("with a damaged bookmark:\n%s, want\n%s", got, spoiled)
		}
	}
	if err := os.WriteFile(kept[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
	newGrowingTrace(t, path).record(3000, 512)
	if got, want := lookAt(t, path, folder), lookAt(t, path, ""); got != want {
		t.Errorf("of another trace:\n%s, want\n%s", got, want)
	}
}
