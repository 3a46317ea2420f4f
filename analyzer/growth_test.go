package analyzer

import (
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/cause"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// growing is a program in the making whose blocks have call stacks of their own.
type growing struct {
	story
	next uint64
}

func (g *growing) event(e trace.Event) {
	if e.Level == 0 {
		e.Level, e.Mem = cuda.LevelFramework, cuda.MemoryDevice
	}
	g.add(e)
}

// keep allocates a block of the framework that stays.
func (g *growing) keep(stack trace.StackID, size uint64) uint64 {
	g.next += 1 << 30
	g.event(trace.Event{Kind: trace.EventAlloc, Addr: g.next, Size: size, Stack: stack})
	return g.next
}

func (g *growing) free(addr uint64) { g.event(trace.Event{Kind: trace.EventFree, Addr: addr}) }

// work allocates and frees.
func (g *growing) work(times int) {
	for range times {
		g.free(g.keep(stackAllocator, 16*mib))
	}
}

// driver is an event of the driver's level that stays.
func (g *growing) driver(mem cuda.MemoryKind, size uint64) {
	g.next += 1 << 30
	g.alloc(mem, g.next, size)
}

// TestGrowthOfTheTotal: what is told is by how much the total rose, and a small list that grows more evenly does not
// stand for it; a step each epoch is growth, however few there are.
func TestGrowthOfTheTotal(t *testing.T) {
	t.Parallel()
	for epochs := 4; epochs <= 12; epochs++ {
		g := &growing{}
		g.keep(stackNowhere, 32*mib)
		for range epochs {
			g.work(8 * 12)
			for range 3 {
				g.keep(stackProgram, 100*mib)
				g.keep(stackBLAS, 512)
			}
		}
		s := g.summary(t, Options{Question: Question{Groupings: []string{"site"}}})
		got, want := s.Trend, uint64(epochs)*3*(100*mib+512)
		if got.Kind != report.GrowthSteady || got.Bytes != want || got.ToBytes-got.FromBytes != want ||
			len(got.Owners) != 2 || got.Owners[0].Site != sites[stackProgram] ||
			got.Owners[0].Bytes != uint64(epochs)*300*mib || got.Owned() != want ||
			s.GrowthKind() != report.GrowthSteady {
			t.Errorf("%d epochs: %+v", epochs, got)
		}
	}
}

// TestGrowthIsMatter: it takes 1 MiB and half a percent of the peak.
func TestGrowthIsMatter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		peak, each uint64 // each 100 times
		want       string
	}{
		"a MiB":               {32 * mib, 11 * kib, report.GrowthSteady},
		"less than a MiB":     {32 * mib, 10 * kib, report.GrowthNone},
		"half a percent":      {80 << 30, 4400 * kib, report.GrowthSteady},
		"less than half of 1": {80 << 30, 4000 * kib, report.GrowthNone},
	} {
		g := &growing{}
		g.keep(stackNowhere, c.peak)
		for range 100 {
			g.work(2)
			g.keep(stackProgram, c.each)
		}
		if got := g.summary(t, Options{Question: Question{Groupings: []string{"site"}}}).Trend; got.Kind != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestGrowthHasStopped: a cache that is full, one that is emptied in turn, and one that ended with its request while
// the rest stayed are no growth.
func TestGrowthHasStopped(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(g *growing){
		"full at 70%": func(g *growing) {
			var cache []uint64
			for range 1000 {
				g.work(2)
				if cache = append(cache, g.keep(stackProgram, mib)); len(cache) > 700 {
					g.free(cache[0])
					cache = cache[1:]
				}
			}
		},
		"emptied": func(g *growing) {
			var list []uint64
			for i := range 1000 {
				g.work(2)
				if list = append(list, g.keep(stackProgram, mib)); i%400 == 399 {
					for _, addr := range list {
						g.free(addr)
					}
					list = nil
				}
			}
		},
		"ended": func(g *growing) {
			var list []uint64
			for range 1000 {
				g.work(2)
				list = append(list, g.keep(stackProgram, mib))
			}
			for _, addr := range list {
				g.free(addr)
			}
		},
		"replaced, ended": func(g *growing) {
			cache := g.keep(stackProgram, mib)
			for i := range uint64(300) {
				g.work(30)
				larger := g.keep(stackProgram, (2+i)*mib)
				g.free(cache)
				cache = larger
			}
			g.free(cache)
		},
	} {
		g := &growing{}
		for range 8 {
			g.keep(stackNowhere, mib)
		}
		run(g)
		got := g.summary(t, Options{Question: Question{Groupings: []string{"site"}}})
		if got.Trend.Kind == report.GrowthSteady || len(got.Growing()) > 0 {
			t.Errorf("%s: %+v", name, got.Trend)
		}
	}
}

// TestGrowthUpToTheLastIteration: memory that each iteration of a training left is growth, however much is allocated
// after the last one, as by a test of the model. It was none as soon as that took a sixth of all records.
func TestGrowthUpToTheLastIteration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name              string
		iterations, after int
		freed             bool // before what comes after
		want              string
	}{
		{"nothing after it", 80, 0, false, report.GrowthSteady},
		{"a short test", 80, 20, false, report.GrowthSteady},
		{"as much again", 80, 80, false, report.GrowthSteady},
		{"far more", 80, 400, false, report.GrowthSteady},
		{"freed", 80, 80, true, report.GrowthNone},
		{"a few iterations", 12, 80, false, report.GrowthNone},
	} {
		g := &growing{}
		g.keep(stackNowhere, 32*mib)
		var kept []uint64
		for i := range c.iterations {
			g.event(trace.Event{Kind: trace.EventStep, Count: uint64(i)})
			g.work(8)
			kept = append(kept, g.keep(stackProgram, 4*mib))
		}
		g.event(trace.Event{Kind: trace.EventStep, Count: uint64(c.iterations)})
		for _, addr := range kept {
			if c.freed {
				g.free(addr)
			}
		}
		g.work(8 * c.after)
		ahead := &memorySource{events: g.events}
		fillTables(&ahead.tables)
		s := g.summary(t, Options{Question: Question{Groupings: []string{"site"}}, Training: true, Ahead: ahead,
			RuleSets: []profile.RuleGrouping{{Name: "category", Rules: madeSet(t)}}})
		if got := s.Trend; got.Kind != c.want || c.want == report.GrowthSteady &&
			(got.BytesPerIteration != 4*mib || got.Owners[0].Site != sites[stackProgram]) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestGrowthOfOtherMemory: each kind of memory is judged by itself, on one clock: what was all pinned at the beginning
// does not grow. Where one may grow, there is no word of none.
func TestGrowthOfOtherMemory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run   func(g *growing)
		level string // that grows; "": none
		bytes uint64
		kind  string
	}{
		"pinned": {func(g *growing) {
			for range 200 {
				g.work(2)
				g.driver(cuda.MemoryHost, 100*kib)
			}
		}, "host", 200 * 100 * kib, report.GrowthSteady},
		"registered": {func(g *growing) {
			for range 300 {
				g.work(2)
				g.driver(cuda.MemoryRegistered, 8*kib)
			}
		}, "registered", 300 * 8 * kib, report.GrowthSteady},
		"managed": {func(g *growing) {
			for range 200 {
				g.work(2)
				g.driver(cuda.MemoryManaged, mib)
			}
		}, "managed", 200 * mib, report.GrowthSteady},
		"driver beside a framework": {func(g *growing) {
			for range 200 {
				g.work(2)
				g.driver(cuda.MemoryDevice, mib)
			}
		}, "driver", 200 * mib, report.GrowthSteady},
		"pinned at the beginning": {func(g *growing) {
			for range 200 {
				g.driver(cuda.MemoryHost, 100*kib)
			}
			g.work(400)
		}, "", 0, report.GrowthNone},
		"pinned, with nothing to judge it by": {func(g *growing) {
			g.free(g.keep(stackAllocator, mib))
			for range 200 {
				g.driver(cuda.MemoryHost, 100*kib)
			}
		}, "", 0, report.GrowthUnknown},
	} {
		g := &growing{}
		g.keep(stackNowhere, mib)
		c.run(g)
		s := g.summary(t, Options{Question: Question{Groupings: []string{"site"}}})
		list := s.Growing()
		if s.GrowthKind() != c.kind || len(list) != min(len(c.level), 1) {
			t.Errorf("%s: %s, %+v, %+v", name, s.GrowthKind(), s.Trend, s.OtherTrends)
		} else if c.level != "" && (list[0].Level != c.level || list[0].Bytes != c.bytes || list[0].FullInSeconds > 0 &&
			c.level != "driver") {
			t.Errorf("%s: %+v", name, list[0])
		}
	}
}

// TestGrowthOfImported: what was imported from another tool does not tell how often the program came back, so what may
// be the layers of one pass is neither growth nor none.
func TestGrowthOfImported(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{"": report.GrowthSteady, "a snapshot": report.GrowthUnknown} {
		g := &growing{}
		g.keep(stackNowhere, 32*mib)
		for range 100 {
			g.work(2)
			g.keep(stackProgram, mib)
		}
		src := &memorySource{events: g.events, info: trace.Info{cause.ImportKindKey: kind}}
		fillTables(&src.tables)
		s, err := Summarize(src, Options{Question: Question{Groupings: []string{"site"}}})
		if err != nil || s.GrowthKind() != want {
			t.Errorf("%q: %v, %+v", kind, err, s.Trend)
		}
	}
}

// TestGrowthOfPool: a pool above the driver that never frees grows, by a line in time; what is loaded at the beginning
// does not.
func TestGrowthOfPool(t *testing.T) {
	t.Parallel()
	for name, until := range map[string]int{"all the time": 1000, "at the beginning": 200} {
		g := &growing{}
		size := uint64(mib)
		for i := range 1000 {
			if i < until && i%2 == 0 {
				g.driver(cuda.MemoryDevice, size)
				g.change(func(e *trace.Event) { e.Time = int64(i) * 1e7 })
			}
		}
		g.add(trace.Event{Kind: trace.EventMark, Name: 20})
		g.change(func(e *trace.Event) { e.Time = 1e10 })
		s := g.summary(t, Options{Question: Question{Groupings: []string{"site"}}})
		switch grows := len(s.Growing()) > 0; {
		case grows != (until == 1000), grows && (s.Trend.Bytes < 490*mib || s.Trend.BytesPerSecond < 45*mib ||
			s.Trend.BytesPerSecond > 55*mib):
			t.Errorf("%s: %+v", name, s.Trend)
		}
	}
}

// A leak on the null GPU, which runs no kernels, was said to grow by 240 MiB a second and to fill the device in
// minutes. There it grows as much, and nothing is said of seconds.
func TestGrowthOnTheNullGPU(t *testing.T) {
	t.Parallel()
	g := &growing{}
	for i := range 1000 {
		g.driver(cuda.MemoryDevice, mib)
		g.change(func(e *trace.Event) { e.Time = int64(i) * 1e7 })
	}
	for _, null := range []string{"0", "1"} {
		src := &memorySource{events: g.events, info: trace.Info{"nullgpu": null}}
		fillTables(&src.tables)
		s, err := Summarize(src, Options{})
		if err != nil {
			t.Fatal(err)
		}
		g, real := s.Trend, null == "0"
		if g.Kind != report.GrowthSteady || g.Bytes < 900*mib || (g.BytesPerSecond > 0) != real {
			t.Errorf("null GPU %s: %+v", null, g)
		}
	}
}

// A program whose memory grew was told "No growth detected." once its segments grew, too: at its end it took 1.9 GiB in
// pages of 20 MiB, and each counted as work that went on without growth. What an allocator takes from the driver does
// not change what is said of its blocks.
func TestGrowthWhateverSegmentsAre(t *testing.T) {
	t.Parallel()
	trend := func(page uint64) *report.Trend {
		g := &growing{}
		g.keep(stackAllocator, 32*mib) // tells whose blocks they are
		take := func(size uint64) {
			for range size / page {
				g.driver(cuda.MemoryDevice, page)
				g.change(func(e *trace.Event) { e.Stack = stackAllocator })
			}
		}
		for range 60 {
			take(40 * mib)
			g.work(2)
			g.keep(stackProgram, 8*mib)
		}
		take(4000 * mib)
		g.keep(stackNowhere, 4000*mib)
		return g.summary(t, Options{Question: Question{Groupings: []string{"site"}}}).Trend
	}
	want := trend(40 * mib)
	if got := trend(4 * mib); want.Kind != report.GrowthSteady || got.Kind != want.Kind || got.Bytes != want.Bytes {
		t.Errorf("in large pieces %+v, in small ones %+v", want, got)
	}
}
