package analyzer

import (
	"regexp"
	"testing"

	"memtrace/cuda"
	"memtrace/trace"
)

// TestFocusOnNames: a filter knows what a block will be called when it begins, and a module's name before it is said.
func TestFocusOnNames(t *testing.T) {
	l := newMadeLoop(4, false)
	l.src.events = nil // a module that is named behind everything
	block := func(addr, size uint64, python trace.StackID) {
		l.add(trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, Thread: 1,
			Addr: addr, Size: size, Stack: stackAllocator, PyStack: python})
	}
	block(0x1000, 512, stackMain)
	block(0x2000, 1024, stackForward)
	block(0x4000, 2048, stackMain)
	l.add(trace.Event{Kind: trace.EventName, Category: trace.CategoryParameter, Addr: 0x1080, Size: 256, Name: 600})
	l.add(trace.Event{Kind: trace.EventName, Category: trace.CategoryModule, Handle: 0x9000, Name: 603})
	for _, test := range []struct {
		focus, ignore string
		want          uint64
	}{
		{`^net\.fc\.weight`, "", 512},
		{`^net\.act$`, "", 1024},
		{`^net`, "", 1536},
		{"", `^net`, 2048},
		{"unnamed", "", 0}, // not a name
		{"no module", "", 0},
	} {
		first, ahead := *l.src, *l.src
		opts := Options{Ahead: &ahead}
		if test.focus != "" {
			opts.Focus = regexp.MustCompile(test.focus)
		}
		if test.ignore != "" {
			opts.Ignore = regexp.MustCompile(test.ignore)
		}
		s, err := Summarize(&first, opts)
		if err != nil {
			t.Fatal(err)
		}
		if s.Framework.PeakBytes != test.want {
			t.Errorf("focus %q, ignore %q: %d bytes, want %d", test.focus, test.ignore, s.Framework.PeakBytes,
				test.want)
		}
	}
}
