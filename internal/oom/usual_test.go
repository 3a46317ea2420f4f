package oom

import (
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/trace"
)

// The text written in the program began with what half the batch gives back, where the input was many times as long as
// usual. It does so no more where no iteration before came near this one, and says that.
func TestUnusualIterationIsTold(t *testing.T) {
	for _, c := range []struct {
		usual, now uint64
		count      int
		says       bool
	}{{gib, 6 * gib, 4, true}, {gib, 6 * gib, 2, false}, {5 * gib, 6 * gib, 4, false}} {
		w := NewWatch(&trace.Tables{}, trace.Info{}, 1<<40)
		seq := uint64(0)
		event := func(kind trace.EventKind, allocated uint64) {
			seq++
			e := trace.Event{Kind: kind, Seq: seq, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, API: 64,
				Allocated: allocated, Size: allocated, Addr: 0x7f0000000000, Thread: 1}
			if kind == trace.EventName {
				e.Category, e.Addr = trace.CategoryStep, 0
			}
			w.usual.event(&e)
		}
		event(trace.EventAlloc, 2*gib)
		event(trace.EventName, 0)
		for range c.count {
			event(trace.EventAlloc, 2*gib+c.usual)
			event(trace.EventFree, 2*gib)
			event(trace.EventName, 0)
		}
		event(trace.EventOOM, 2*gib+c.now)
		s := trainingOOM()
		e := &s.OOM.Events[0]
		e.Seq, e.Composition.Stepped = seq, true
		e.Advice = Advise(e, AdviceFacts{Info: torchInfo()})
		w.usual.tell(e)
		text := adviceTexts(s)
		if says := strings.Contains(text, "had more than 1.00 GiB beyond what was there when it began, this one has "+
			"6.00 GiB: "); says != c.says || says == strings.Contains(text, "Half the batch") {
			t.Errorf("%+v: %s", c, text)
		}
		if report.SizeText(e.Advice[0].FreesBytes) == "3.00 GiB" == c.says {
			t.Errorf("%+v: %+v", c, e.Advice[0])
		}
		w.Close()
	}
}
