package export

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/guest"
	"memtrace/internal/importer"
	"memtrace/internal/moment"
	"memtrace/trace"
)

// imported makes a trace of a snapshot and summarises it.
func imported(t *testing.T, pickle []byte) *report.Summary {
	t.Helper()
	var file bytes.Buffer
	w, err := trace.NewWriter(&file, trace.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := importer.Find("torch").Import(w, bytes.NewReader(pickle), int64(len(pickle)),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	return summarized(t, file.Bytes(), analyzer.Options{})
}

// figures are those of a level that must be the same before and after.
func figures(l report.Level) string {
	return fmt.Sprintf("peak %d, left %d, %d allocations, %d bytes", l.PeakBytes, l.LiveBytes, l.AllocCount,
		l.AllocBytes)
}

// TestSnapshotRoundTrip: an imported snapshot has the trace's figures on both levels, to the byte, and the same memory
// at the peak.
func TestSnapshotRoundTrip(t *testing.T) {
	tried := 0
	for name, raw := range guest.ReportTraces(t) {
		s := summarized(t, raw, analyzer.Options{})
		if s.LostRecords > 0 || s.Health.UnmatchedFrees > 0 {
			continue
		}
		tried++
		pickle, written := replayed(t, Snapshot, runOf(raw))
		back := imported(t, pickle)
		for level, pair := range map[string][2]report.Level{"framework": {s.Framework, back.Framework},
			"driver": {s.Driver, back.Driver}} {
			if got, want := figures(pair[1]), figures(pair[0]); got != want {
				t.Errorf("%s, %s: %s; want %s", name, level, got, want)
			}
		}
		if !strings.Contains(written.Words, "at the end") {
			t.Errorf("%s: %q", name, written.Words)
		}
		peak, err := moment.Parse("peak")
		if err != nil {
			t.Fatal(err)
		}
		run := runOf(raw)
		run.Count.At = peak
		pickle, _ = replayed(t, Snapshot, run)
		back = imported(t, pickle)
		at := summarized(t, raw, analyzer.Options{Question: analyzer.Question{At: peak}}).At
		if back.Framework.LiveBytes != at.Framework.LiveBytes || back.Main().PeakBytes != s.Main().PeakBytes ||
			s.MainLevel() == report.LevelFramework && back.Driver.LiveBytes != at.Driver.LiveBytes {
			t.Errorf("%s at the peak: framework %s, driver %s; want %d and %d", name, figures(back.Framework),
				figures(back.Driver), at.Framework.LiveBytes, at.Driver.LiveBytes)
		}
	}
	if tried < 8 {
		t.Errorf("only %d traces", tried)
	}
}

// foreignTrace is a framework with two segments, one of them mapped from two handles, and another library.
var foreignTrace = fmt.Sprintf(`trace version=1
info key="framework.torch" value="2.7.1"
info key="clock.base_unix_ns" value="1700000000000000000"
string id=1 value=%q
thread id=1 tid=7 name="python3"
device index=0 name="Null GPU" uuid="GPU-0" total=85899345920
device index=1 name="Null GPU" uuid="GPU-1" total=85899345920
module id=1 start=0x1000 end=0x2000 base=0x1000 path="/venv/libc10_cuda.so"
module id=2 start=0x3000 end=0x4000 base=0x3000 path="/venv/libcublas.so.12"
code id=10 name=%q file="/home/ada/train.py" line=1 table=lnotab lines=0a01
stack id=30 frames=0x1100
stack id=31 frames=0x3100
pystack id=20 frames=10+0
alloc seq=1 time=1000 thread=1 level=driver mem=device device=0 addr=0x7f0000000000 size=2097152 stack=30
alloc seq=2 time=2000 thread=1 level=framework mem=device device=0 addr=0x7f0000000000 size=1024 rest=25 stack=30 pystack=20
alloc seq=3 time=2100 thread=1 level=driver mem=device device=0 addr=0x7f1000000000 size=1000 stack=31 pystack=20
alloc seq=4 time=2200 thread=1 level=driver mem=vmm device=1 addr=0x51 size=2097152 stack=30
alloc seq=5 time=2200 thread=1 level=driver mem=vmm device=1 addr=0x52 size=2097152 stack=30
map seq=6 time=2201 thread=1 device=1 addr=0x7f2000000000 size=2097152 handle=0x51
map seq=7 time=2200 thread=1 device=1 addr=0x7f2000200000 size=2097152 handle=0x52
alloc seq=8 time=2250 thread=1 level=framework mem=device device=1 addr=0x7f2000100000 size=2097152 stack=30 pystack=20
free seq=9 time=2250 thread=1 level=framework mem=device device=0 addr=0x7f0000000000
alloc seq=10 time=2240 thread=1 level=framework mem=device device=0 addr=0x7f0000000200 size=512 stack=30
alloc seq=11 time=3000 thread=1 level=driver mem=device device=0 addr=0x7f3000000000 size=4096 stack=31
free seq=12 time=3100 thread=1 level=driver mem=device device=0 addr=0x7f3000000000
mark seq=13 time=3200 thread=1 name=1
oom seq=14 time=3300 thread=1 level=framework device=0 size=4096
end reason="exit" time=9000
`, hostileName, hostileName)

// Memory outside of the framework has separate segments, which count as the driver's after the import, and the two
// devices' blocks are imported in their order.
func TestSnapshotOfSeveralAllocators(t *testing.T) {
	raw := guest.Encoded(t, foreignTrace)
	s := summarized(t, raw, analyzer.Options{})
	pickle, _ := replayed(t, Snapshot, runOf(raw))
	back := imported(t, pickle)
	if got, want := figures(back.Framework), figures(s.Framework); got != want {
		t.Errorf("framework: %s; want %s", got, want)
	}
	if got, want := figures(back.Driver), figures(s.Driver); got != want {
		t.Errorf("driver: %s; want %s", got, want)
	}
	if back.Framework.RequestedLive == nil || back.Framework.RequestedLive.Bytes != 512+2097152 {
		t.Errorf("requests: %+v", back.Framework.RequestedLive)
	}
	for i, d := range s.Devices {
		if got, want := figures(back.Devices[i].Driver), figures(d.Driver); got != want {
			t.Errorf("device %d: %s; want %s", i, got, want)
		}
	}
	if back.OOM.Count != 1 || len(back.Marks) != 1 {
		t.Errorf("%d times out of memory, marks %v", back.OOM.Count, back.Marks)
	}
	for _, text := range []string{"libcublas.so.12", "beside the framework's allocator"} {
		if !bytes.Contains(pickle, []byte(text)) {
			t.Errorf("the snapshot has no %s", text)
		}
	}
	if bytes.Count(pickle, []byte("train.py")) != 1 {
		t.Errorf("a stack stands there %d times", bytes.Count(pickle, []byte("train.py")))
	}
}

// Memory from before the kept history precedes it: the memory left at the end is the same.
func TestSnapshotLimit(t *testing.T) {
	raw := guest.Encoded(t, foreignTrace)
	s := summarized(t, raw, analyzer.Options{})
	for limit := 1; limit < 16; limit++ {
		run := runOf(raw)
		run.Count.HistoryBlocks = limit
		pickle, written := replayed(t, Snapshot, run)
		back := imported(t, pickle)
		if back.Framework.LiveBytes != s.Framework.LiveBytes || back.Driver.LiveBytes != s.Driver.LiveBytes {
			t.Errorf("%d events: %d and %d bytes are left; want %d and %d", limit, back.Framework.LiveBytes,
				back.Driver.LiveBytes, s.Framework.LiveBytes, s.Driver.LiveBytes)
		}
		if announced := strings.Contains(strings.Join(written.Limits, ""), "the history begins late"); announced !=
			(limit < 12) {
			t.Errorf("%d events: %q", limit, written.Limits)
		}
	}
}
