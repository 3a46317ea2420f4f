package analyzer

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/moment"
	"memtrace/trace"
)

// A recorder that ran out of room dropped 22 % of its records, frees among them, and the report called 2.9 MB a peak
// where at most 128 KB could be live: what it said about the loss stood in another line than the figure. Since then
// every figure that lost records may have changed has a lower bound, and says whether it is an upper one itself.

// withoutBounds takes away all that speaks of lost records, for oracles that know nothing of it.
func withoutBounds(s *report.Summary) {
	s.Bounds = nil
	level := func(l *report.Level) { l.PeakBytesLower, l.LiveBytesLower = nil, nil }
	level(&s.Driver)
	level(&s.Framework)
	for name, l := range s.Other {
		level(&l)
		s.Other[name] = l
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		level(&d.Driver)
		level(&d.Framework)
		d.ReservedBytesCurrentLower, d.ReservedBytesPeakLower = nil, nil
	}
	for i := range s.Groups {
		for n := range s.Groups[i].Rows {
			s.Groups[i].Rows[n].PeakBytesLower, s.Groups[i].Rows[n].LiveBytesLower = nil, nil
		}
	}
	for i := range s.Ledgers {
		s.Ledgers[i].BeforeLoss = false
		for n := range s.Ledgers[i].Rows {
			s.Ledgers[i].Rows[n].BytesLower = nil
		}
	}
	for i := range s.Marks {
		s.Marks[i].DriverBytesLower, s.Marks[i].FrameworkBytesLower = nil, nil
	}
	if m := s.At; m != nil {
		m.BeforeLoss, m.Driver.LiveBytesLower, m.Framework.LiveBytesLower = false, nil, nil
		for i := range m.Devices {
			m.Devices[i].Driver.LiveBytesLower, m.Devices[i].Framework.LiveBytesLower = nil, nil
		}
		for i := range m.Groups {
			for n := range m.Groups[i].Rows {
				m.Groups[i].Rows[n].LiveBytesLower = nil
			}
		}
	}
}

// endsMemory says which records a recorder counts as such that end memory.
func endsMemory(e trace.Event) bool {
	return e.Kind == trace.EventFree || e.Kind == trace.EventUnmap || e.Kind == trace.EventDestroy
}

// lossShape is how a recorder loses records.
type lossShape struct {
	share  int // percent of the records that may be lost, while some are
	bursts int // how often some are
	length int // of a burst, in records
	name   string
	may    func(trace.Event) bool // which may be lost
	kinds  bool                   // the recorder tells which
	place  bool                   // and where
	silent bool                   // it tells of them at the end only
}

// lose drops records from a stream and tells of it as the recorder does: it looks at its counters once in a while, and
// what it finds missing it tells before the records that it then hands out, with the highest number that is drawn by
// then, of which many are still to be handed out.
func lose(rng *rand.Rand, events []trace.Event, shape lossShape) (kept []trace.Event, lost uint64) {
	drop := make([]bool, len(events))
	for range shape.bursts {
		from := rng.IntN(len(events))
		for i := from; i < min(from+shape.length, len(events)); i++ {
			drop[i] = events[i].Kind != trace.EventLost && shape.may(events[i]) && rng.IntN(100) < shape.share
		}
	}
	announced := make([]bool, len(events))
	for at := 0; at < len(events); {
		size := 1 + rng.IntN(40)          // records of this round
		drawn := at + size + rng.IntN(60) // what the program has done by then
		var word trace.Lost
		for i := at; i < min(drawn, len(events)); i++ {
			if drop[i] && !announced[i] {
				announced[i] = true
				word.Count++
				if endsMemory(events[i]) {
					word.Enders++
				}
				word.Until = max(word.Until, events[i].Seq)
			}
		}
		if word.Known = shape.kinds; word.Count > 0 && !shape.silent {
			word.Until = max(word.Until, events[min(drawn, len(events))-1].Seq)
			if !shape.place {
				word.Until = 0
			}
			e := word.Event(0)
			if at > 0 {
				e.Seq, e.Time = events[at-1].Seq, events[at-1].Time
			}
			if !shape.place { // earlier recorders told of it afterwards
				defer func(n int) { kept = slices.Insert(kept, min(n, len(kept)), e) }(len(kept) + size)
			} else {
				kept = append(kept, e)
			}
		}
		lost += word.Count
		for i := at; i < min(at+size, len(events)); i++ {
			if !drop[i] {
				kept = append(kept, events[i])
			}
		}
		at += size
	}
	return kept, lost
}

// honest makes the framework's counters those of the framework's device blocks, and of the driver memory that its
// library holds, as a real one's are.
func honest(events []trace.Event) []trace.Event {
	var allocated, reserved [2]uint64
	held := map[uint64]trace.Event{}
	for i := range events {
		e := &events[i]
		if e.Level == cuda.LevelFramework {
			e.Mem = cuda.MemoryDevice
			if e.Device < 0 || e.Device > 1 {
				continue
			}
			switch e.Kind {
			case trace.EventAlloc:
				allocated[e.Device] += e.Size
			case trace.EventFree:
				allocated[e.Device] -= e.Size
			}
			e.Allocated, e.Reserved = allocated[e.Device], reserved[e.Device]
			continue
		}
		// The allocator takes plain memory of the driver, which nobody else's contexts end.
		if e.Level != cuda.LevelDriver || e.Status != 0 || e.Mem != cuda.MemoryDevice && e.Mem != cuda.MemoryAsync {
			continue
		}
		switch old, mine := held[e.Addr]; {
		case e.Kind == trace.EventAlloc && e.Mem == cuda.MemoryAsync && e.Device >= 0:
			e.Stack = stackAllocator
			held[e.Addr] = *e
			reserved[e.Device] += e.Size
		case e.Kind == trace.EventAlloc && e.Stack == stackAllocator:
			e.Stack = stackBLAS
		case e.Kind == trace.EventFree && mine:
			reserved[old.Device] -= old.Size
			delete(held, e.Addr)
		}
	}
	return events
}

// lossShapes are the ways to lose records.
func lossShapes(rng *rand.Rand) []lossShape {
	any := func(trace.Event) bool { return true }
	frees := endsMemory
	others := func(e trace.Event) bool { return !endsMemory(e) }
	shape := lossShape{share: []int{5, 30, 100}[rng.IntN(3)], bursts: 1 + rng.IntN(3), length: 1 + rng.IntN(120),
		kinds: true, place: true}
	with := func(name string, may func(trace.Event) bool, kinds, place, silent bool) lossShape {
		s := shape
		s.name, s.may, s.kinds, s.place, s.silent = name, may, kinds, place, silent
		return s
	}
	return []lossShape{
		with("anything", any, true, true, false),
		with("frees", frees, true, true, false),
		with("allocations", others, true, true, false),
		with("of unknown kind", any, false, true, false),
		with("at an unknown place", any, false, false, false),
		with("counted only", any, false, false, true),
	}
}

// boundsSeeds is how many random histories the bounds are tried on: more in the long form.
func boundsSeeds() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("BOUNDS_SEEDS"), 10, 64); err == nil {
		return n
	}
	return 150
}

// TestBoundsHoldTheTruth: whatever is lost, the true figures lie within the bounds that are claimed.
func TestBoundsHoldTheTruth(t *testing.T) {
	useful := map[string]int{}
	for seed := range boundsSeeds() {
		rng := rand.New(rand.NewPCG(seed, 99))
		shape := streamShape{events: 50 + rng.IntN(500), noHandles: rng.IntN(3) == 0, noStacks: rng.IntN(4) == 0}
		whole := honest(randomStream(seed, shape))
		opts := Options{Question: Question{Groupings: []string{"tag", "device"},
			At: must(moment.Parse([]string{"exit", "peak"}[rng.IntN(2)]))}}
		if rng.IntN(4) == 0 {
			opts.Devices = []int16{int16(rng.IntN(2))}
		}
		truth := trueSummary(whole, opts)
		for _, shape := range lossShapes(rng) {
			name := shape.name
			kept, lost := lose(rng, slices.Clone(whole), shape)
			if lost == 0 {
				continue
			}
			src := &memorySource{events: kept, lost: [3]uint64{lost}, batch: 1 + rng.IntN(50)}
			fillTables(&src.tables)
			s, err := summarizeKeeping(src, opts, []int{0, 1, 10}[seed%3])
			if err != nil {
				t.Fatal(err)
			}
			for _, fault := range outOfBounds(s, truth, opts) {
				t.Errorf("seed %d, %s lost: %s", seed, name, fault)
			}
			if *s.Driver.PeakBytesLower > 0 && *s.Framework.PeakBytesLower > 0 {
				useful[name]++
			}
			if s.Bounds.RecordedIsUpper {
				useful[name+", upper"]++
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	for _, name := range []string{"anything", "frees", "allocations", "of unknown kind", "frees, upper"} {
		if useful[name] < 20 {
			t.Errorf("%d useful bounds where %s were lost: the test says nothing", useful[name], name)
		}
	}
	t.Log(useful)
}

// trueSummary is the slow replay of the whole history.
func trueSummary(events []trace.Event, opts Options) *report.Summary {
	src := &memorySource{events: events}
	fillTables(&src.tables)
	return expected(src, opts)
}

// outOfBounds lists the figures whose true values lie outside of what a summary claims.
func outOfBounds(s, truth *report.Summary, opts Options) (faults []string) {
	check := func(what string, lower *uint64, recorded, actual uint64) {
		switch {
		case lower == nil:
			faults = append(faults, what+" has no lower bound")
		case *lower > actual:
			faults = append(faults, fmt.Sprintf("%s is %d, certain is %d", what, actual, *lower))
		case s.Bounds.RecordedIsUpper && recorded < actual:
			faults = append(faults, fmt.Sprintf("%s is %d, at most %d", what, actual, recorded))
		case slices.Contains(s.Bounds.Exact, what) && recorded != actual:
			faults = append(faults, fmt.Sprintf("%s is %d, exactly %d", what, actual, recorded))
		}
	}
	level := func(what string, l, actual report.Level) {
		check(what+".peak_bytes", l.PeakBytesLower, l.PeakBytes, actual.PeakBytes)
		check(what+".live_bytes", l.LiveBytesLower, l.LiveBytes, actual.LiveBytes)
	}
	level("driver", s.Driver, truth.Driver)
	level("framework", s.Framework, truth.Framework)
	for name, l := range s.Other {
		level("other_memory."+name, l, truth.Other[name])
	}
	for _, d := range s.Devices {
		for _, actual := range truth.Devices {
			if actual.Index == d.Index {
				level(fmt.Sprintf("devices[%d].driver", d.Index), d.Driver, actual.Driver)
				level(fmt.Sprintf("devices[%d].framework", d.Index), d.Framework, actual.Framework)
			}
		}
	}
	for _, g := range s.Groups {
		actual := truth.Group(g.By, g.Level)
		for _, r := range g.Rows {
			var row report.Row
			if i := slices.IndexFunc(actual.Rows, func(x report.Row) bool { return x.Key == r.Key }); i >= 0 {
				row = actual.Rows[i]
			}
			// names, which may be lost, move blocks between other rows
			if *r.LiveBytesLower > row.LiveBytes && g.By == "device" {
				faults = append(faults, fmt.Sprintf("row %s of %s by %s: %d live, certain %d", r.Key, g.Level, g.By,
					row.LiveBytes, *r.LiveBytesLower))
			}
			if *r.PeakBytesLower > r.PeakBytes || *r.LiveBytesLower > r.LiveBytes {
				faults = append(faults, fmt.Sprintf("row %s of %s by %s: more is certain than was recorded", r.Key,
					g.Level, g.By))
			}
		}
	}
	for i, m := range s.Marks[:min(len(s.Marks), len(truth.Marks))] {
		if m.Count == truth.Marks[i].Count && m.Name == truth.Marks[i].Name &&
			m.LastTimeNS == truth.Marks[i].LastTimeNS {
			check("mark "+m.Name, m.DriverBytesLower, m.DriverBytes, truth.Marks[i].DriverBytes)
			check("mark "+m.Name, m.FrameworkBytesLower, m.FrameworkBytes, truth.Marks[i].FrameworkBytes)
		}
	}
	if opts.At.Kind == moment.Exit {
		check("driver at exit", s.At.Driver.LiveBytesLower, s.At.Driver.LiveBytes, truth.At.Driver.LiveBytes)
		check("framework at exit", s.At.Framework.LiveBytesLower, s.At.Framework.LiveBytes,
			truth.At.Framework.LiveBytes)
	}
	return faults
}

// lost tells of records that were lost: so many ended memory, so many others did not.
func (s *story) lost(enders, others uint64) *story {
	return s.add(trace.Lost{Count: enders + others, Enders: enders, Known: true,
		Until: uint64(len(s.events) + 1)}.Event(0))
}

// reported is a framework's event with its counters.
func (s *story) reported(kind trace.EventKind, addr, size, allocated, reserved uint64) *story {
	return s.add(trace.Event{Kind: kind, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice,
		API: api("reportMemoryUsageToProfiler"), Addr: addr, Size: size,
		Allocated: allocated, Reserved: reserved, Stack: stackAllocator})
}

func (s *story) object(kind trace.EventKind, object cuda.ObjectKind, addr uint64) *story {
	return s.add(trace.Event{Kind: kind, Level: cuda.LevelDriver, Object: object, Addr: addr, API: api("cuMemCreate")})
}

// TestWhatIsCertain holds one short history for every rule, with the bounds worked out by hand. The level is the
// driver's.
func TestWhatIsCertain(t *testing.T) {
	d, h := cuda.MemoryDevice, cuda.MemoryVMM
	owned := func(e *trace.Event) { e.Handle = 0xc0 }
	variable := func(e *trace.Event) { e.Mem, e.Handle = cuda.MemoryModule, 0xc1 }
	tests := []struct {
		name       string
		story      *story
		peak, live uint64
		upper      bool
	}{
		{"before the loss all is certain", (&story{}).alloc(d, 0x1000, 100).alloc(d, 0x2000, 50).free(d, 0x1000).lost(1,
			1), 150, 0, false},
		{"after it nothing older is", (&story{}).alloc(d, 0x1000, 100).lost(1, 1).alloc(d, 0x2000, 50), 100, 50, false},
		{"what is younger is", (&story{}).alloc(d, 0x1000, 10).lost(1, 1).alloc(d, 0x2000, 50).alloc(d, 0x3000,
			60).free(d, 0x2000), 110, 60, false},
		{"until the loss is over only beginnings are",
			(&story{}).lost(1, 1).change(func(e *trace.Event) { e.Handle = 3 }).alloc(d, 0x1000, 10).alloc(d, 0x2000,
				50).alloc(d, 0x3000, 20), 50, 20, false},
		{"a recorded free proves nothing", (&story{}).alloc(d, 0x1000, 10).lost(1, 1).alloc(d, 0x2000, 50).free(d,
			0x1000), 50, 50, false},
		{"no frees lost", (&story{}).alloc(d, 0x1000, 100).lost(0, 7).alloc(d, 0x2000, 50), 150, 150, false},
		{"only frees lost", (&story{}).alloc(d, 0x1000, 100).lost(7, 0).alloc(d, 0x2000, 50), 100, 50, true},
		{"a second loss", (&story{}).alloc(d, 0x1000, 10).lost(1, 0).alloc(d, 0x2000, 50).lost(1, 0).alloc(d, 0x3000,
			20), 50, 20, true},
		{"a context whose beginning was lost is reset", (&story{}).lost(0, 1).alloc(d, 0x1000,
			100).change(owned).object(trace.EventDestroy, cuda.ObjectContext, 0), 100, 0, false},
		{"unmapping over a mapping whose end was lost",
			(&story{}).alloc(h, 7, 2*mib).mapAt(0x200000, 4*mib, 7).lost(2, 1).alloc(h, 9, mib).mapAt(0x400000, 2*mib,
				9).free(h, 9).unmap(0x200000, 4*mib), 2 * mib, 0, false},
		{"a variable of another module at the same place", (&story{}).alloc(d, 0x1000, 100).change(variable).lost(1,
			0).alloc(d, 0x1000, 300).change(variable), 300, 300, true},
		{"the framework's counter",
			(&story{}).alloc(d, 0x1000, 100).change(func(e *trace.Event) { e.Stack = stackAllocator }).reported(
				trace.EventAlloc, 0x1000, 10, 10, 100).lost(1, 1).
				reported(trace.EventAlloc, 0x1200, 10, 20, 300), 300, 300, false},
		{"which is old when the driver's memory was freed",
			(&story{}).alloc(d, 0x1000, 100).change(func(e *trace.Event) { e.Stack = stackAllocator }).reported(
				trace.EventAlloc, 0x1000, 10, 10, 100).
				lost(1, 1).reported(trace.EventAlloc, 0x1200, 10, 20, 300).free(d, 0x8000), 300, 0, false},
		{"and not believed when it was wrong before",
			(&story{}).alloc(d, 0x1000, 100).change(func(e *trace.Event) { e.Stack = stackAllocator }).reported(
				trace.EventAlloc, 0x1000, 10, 10, 100).
				reported(trace.EventAlloc, 0x1100, 10, 20, 70).lost(1, 1).reported(trace.EventAlloc, 0x1200,
				10, 20, 300),
			100, 0, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := test.story.summary(t, Options{})
			if s.Bounds == nil || !s.Bounds.Placed || s.Bounds.RecordedIsUpper != test.upper {
				t.Fatalf("bounds %+v, want an upper bound: %v", s.Bounds, test.upper)
			}
			if peak, live := *s.Driver.PeakBytesLower, *s.Driver.LiveBytesLower; peak != test.peak ||
				live != test.live {
				t.Errorf("certain are a peak of %d and %d live, want %d and %d", peak, live, test.peak, test.live)
			}
		})
	}
}

// TestModulesOutliveContextsAfterALoss: the module that ends with its device's last context may have ended before, and
// its handle be another's, whose variables live on. They are counted for too long rather than not at all.
func TestModulesOutliveContextsAfterALoss(t *testing.T) {
	s := (&story{}).object(trace.EventCreate, cuda.ObjectContext, 0xc5).object(trace.EventCreate, cuda.ObjectModule,
		0xc1).lost(1, 0).
		alloc(cuda.MemoryModule, 0x1000, 100).change(func(e *trace.Event) { e.Handle = 0xc1 }).object(
		trace.EventDestroy, cuda.ObjectContext, 0xc5).summary(t, Options{})
	if !s.Bounds.RecordedIsUpper || s.Driver.LiveBytes != 100 || *s.Driver.LiveBytesLower != 0 {
		t.Errorf("%d live, certain %d", s.Driver.LiveBytes, *s.Driver.LiveBytesLower)
	}
}

// TestImportedSizeIsUncertain: the size of an imported handle is that of its first mapping. When that was lost, another
// one's is taken, which may be larger.
func TestImportedSizeIsUncertain(t *testing.T) {
	s := (&story{}).alloc(cuda.MemoryImported, 7, 0).lost(0, 1).mapAt(0x400000, 4*mib, 7).summary(t, Options{})
	if l := s.Other["foreign"]; l.LiveBytes != 4*mib || *l.LiveBytesLower != 0 || *l.PeakBytesLower != 0 {
		t.Errorf("foreign memory %+v, certain %d and %d", l, *l.PeakBytesLower, *l.LiveBytesLower)
	}
}

// TestUnknownPlaceLeavesNothingCertain: earlier recorders count what they lost and tell of it behind what it concerns;
// threads without a ring are only counted.
func TestUnknownPlaceLeavesNothingCertain(t *testing.T) {
	for name, src := range map[string]*memorySource{
		"told behind": {events: (&story{}).alloc(cuda.MemoryDevice, 0x1000, 100).add(trace.Event{Kind: trace.EventLost,
			Count: 3}).events},
		"counted": {events: (&story{}).alloc(cuda.MemoryDevice, 0x1000, 100).lost(1, 0).events,
			lost: [3]uint64{4, 1, 0}},
	} {
		fillTables(&src.tables)
		s, err := Summarize(src, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if b := s.Bounds; b == nil || b.Placed || b.RecordedIsUpper || *s.Driver.PeakBytesLower != 0 ||
			*s.Driver.LiveBytesLower != 0 {
			t.Errorf("%s: bounds %+v, certain %d", name, b, *s.Driver.PeakBytesLower)
		}
	}
}
