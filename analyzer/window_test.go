package analyzer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/internal/moment"
	"memtrace/trace"
)

// Marks that windows of these tests begin and end at.
const (
	markFrom trace.StringID = 4711
	markTo   trace.StringID = 4712
)

func windowSource(t *testing.T, events []trace.Event) *memorySource {
	t.Helper()
	src := &memorySource{events: events, batch: 97}
	fillTables(&src.tables)
	src.tables.AddString(markFrom, "from")
	src.tables.AddString(markTo, "to")
	return src
}

func parseAt(t *testing.T, text string) moment.At {
	t.Helper()
	at, err := moment.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// windowOracle adds everything up again after every event, and knows the window by the numbers of events.
type windowOracle struct {
	*oracle
	accounts []heap.Account
	peak     map[string]uint64 // by level, and by level and device
	atPeak   map[string]map[string]uint64
	start    []oracleBlock
	before   map[string]report.Row
	levels   map[string]report.Level
}

func (o *windowOracle) blocks() (list []oracleBlock) {
	for _, b := range o.live {
		if b.visible && !b.unsized {
			list = append(list, *b)
		}
	}
	return list
}

func (o *windowOracle) each(visit func(name string, l report.Level)) {
	visit("driver", o.s.Driver)
	visit("framework", o.s.Framework)
	for index, d := range o.deviceOf {
		visit(fmt.Sprint("driver ", index), d.Driver)
		visit(fmt.Sprint("framework ", index), d.Framework)
	}
	for name, l := range o.s.Other {
		visit(name, l)
	}
}

func (o *windowOracle) begin() {
	o.start, o.before, o.levels = o.blocks(), map[string]report.Row{}, map[string]report.Level{}
	o.peak, o.atPeak = map[string]uint64{}, map[string]map[string]uint64{}
	for name, row := range o.rows {
		o.before[name] = *row
	}
	o.each(func(name string, l report.Level) { o.levels[name] = l })
	o.look()
}

// look takes in a state.
func (o *windowOracle) look() {
	sums := map[string]uint64{}
	for _, b := range o.blocks() {
		sums[b.account.String()] += b.e.Size
		sums[fmt.Sprint(b.account, " ", b.e.Device)] += b.e.Size
	}
	for _, a := range o.accounts {
		name := a.String()
		if _, known := o.atPeak[name]; known && sums[name] <= o.peak[name] {
			continue
		}
		o.atPeak[name] = map[string]uint64{}
		for _, b := range o.blocks() {
			if b.account != a {
				continue
			}
			for _, by := range o.by {
				o.atPeak[name][by+"|"+o.key(b.e, by)] += b.e.Size
			}
		}
	}
	for name, bytes := range sums {
		o.peak[name] = max(o.peak[name], bytes)
	}
}

// became divides the blocks of a level, of one key of a grouping unless that is "".
func (o *windowOracle) became(a heap.Account, by, key string) (v report.WindowBlocks) {
	same := func(x, y oracleBlock) bool {
		return x.e.Seq == y.e.Seq && x.e.Addr == y.e.Addr && x.account == y.account
	}
	wanted := func(b oracleBlock) bool { return b.account == a && (by == "" || o.key(b.e, by) == key) }
	end := o.blocks()
	for _, b := range o.start {
		if !wanted(b) {
			continue
		}
		v.Start.Add(b.e.Size)
		if slices.ContainsFunc(end, func(e oracleBlock) bool { return same(b, e) }) {
			v.Kept.Add(b.e.Size)
		} else {
			v.Freed.Add(b.e.Size)
		}
	}
	for _, b := range end {
		if wanted(b) {
			v.End.Add(b.e.Size)
			if !slices.ContainsFunc(o.start, func(s oracleBlock) bool { return same(b, s) }) {
				v.New.Add(b.e.Size)
			}
		}
	}
	return v
}

// windowCase is a window in a stream: events from first on, up to and without last.
type windowCase struct {
	events      []trace.Event
	first, last int
	from, to    string
}

// randomWindow takes marks, steps or times as the ends.
func randomWindow(rng *rand.Rand, events []trace.Event) windowCase {
	c := windowCase{first: rng.IntN(len(events)), last: rng.IntN(len(events))}
	c.first, c.last = min(c.first, c.last), max(c.first, c.last)
	insert := func(at int, e trace.Event) {
		e.Time = events[min(at, len(events)-1)].Time
		events = slices.Insert(slices.Clone(events), at, e)
	}
	switch rng.IntN(4) {
	case 0:
		insert(c.last, trace.Event{Kind: trace.EventMark, Name: markTo})
		insert(c.first, trace.Event{Kind: trace.EventMark, Name: markFrom})
		c.last++
		c.from, c.to = "mark:from", "mark:to"
	case 1:
		insert(c.last, trace.Event{Kind: trace.EventStep, Count: 1001})
		insert(c.first, trace.Event{Kind: trace.EventStep, Count: 1000})
		c.last++
		c.from, c.to = "step:1000", "step:1001"
	case 2: // the first events after two times
		after := func(ns int64) int {
			n := slices.IndexFunc(events, func(e trace.Event) bool {
				return e.Time > ns && e.Flags&trace.FlagLate == 0
			})
			if n < 0 {
				return len(events)
			}
			return n
		}
		from, to := events[c.first].Time, events[c.last].Time
		from, to = min(from, to), max(from, to)
		c.from, c.to, c.first, c.last = fmt.Sprintf("%dns", from), fmt.Sprintf("%dns", to), after(from), after(to)
	default:
		insert(c.last, trace.Event{Kind: trace.EventMark, Name: markTo})
		c.first, c.to = 0, "mark:to"
	}
	c.events = events
	return c
}

// TestWindowAgreesWithOracle: whatever a summary says of a window is what a slow and obvious replay says of it.
func TestWindowAgreesWithOracle(t *testing.T) {
	for seed := range uint64(randomStreams()) {
		rng := rand.New(rand.NewPCG(seed, 18))
		shape := streamShape{events: 20 + rng.IntN(600), noHandles: rng.IntN(4) == 0}
		if rng.IntN(3) > 0 {
			shape.delayed = func(trace.Event) bool { return true }
		}
		w := randomWindow(rng, randomStream(seed, shape))
		opts := Options{Question: Question{Groupings: []string{"tag", "library", "api", "thread", "device"}}}
		if rng.IntN(3) == 0 {
			opts.Devices = [][]int16{{0}, {1}}[rng.IntN(2)]
		}
		src := windowSource(t, w.events)
		o := &windowOracle{oracle: newOracle(src, opts), accounts: []heap.Account{heap.AccountDriver,
			heap.AccountFramework}}
		for i, e := range w.events {
			if i == w.first {
				o.begin()
			}
			if i == w.last {
				break
			}
			if o.event(e); i >= w.first {
				o.look()
			}
		}
		if w.first == len(w.events) {
			o.begin()
		}
		opts.From, opts.To = parseAt(t, w.from), parseAt(t, w.to)
		opts.Ahead = windowSource(t, w.events)
		s, err := summarizeKeeping(src, opts, []int{0, 1, 10}[seed%3])
		if err != nil {
			t.Fatalf("seed %d, %s to %s: %v", seed, w.from, w.to, err)
		}
		if problems := o.compare(s); len(problems) > 0 {
			t.Fatalf("seed %d, %s to %s (events %d to %d of %d): %s", seed, w.from, w.to, w.first, w.last,
				len(w.events), strings.Join(problems, "\n"))
		}
	}
}

func (o *windowOracle) compare(s *report.Summary) (problems []string) {
	differ := func(what string, got, want any) {
		if got != want {
			problems = append(problems, fmt.Sprintf("%s: %v, want %v", what, got, want))
		}
	}
	got := map[string]report.Level{"driver": s.Driver, "framework": s.Framework}
	for _, d := range s.Devices {
		got[fmt.Sprint("driver ", d.Index)], got[fmt.Sprint("framework ", d.Index)] = d.Driver, d.Framework
	}
	for name, l := range s.Other {
		got[name] = l
	}
	o.each(func(name string, l report.Level) {
		before := o.levels[name]
		if g, listed := got[name]; listed {
			differ(name+" live", g.LiveBytes, l.LiveBytes)
			differ(name+" allocations", g.AllocCount, l.AllocCount-before.AllocCount)
			differ(name+" bytes", g.AllocBytes, l.AllocBytes-before.AllocBytes)
			differ(name+" frees", g.FreeCount, l.FreeCount-before.FreeCount)
			differ(name+" refused", g.FailedCount, l.FailedCount-before.FailedCount)
			differ(name+" peak", g.PeakBytes, o.peak[name])
		} else if l.AllocCount+l.FailedCount > before.AllocCount+before.FailedCount && len(o.opts.Devices) == 0 {
			differ(name+" listed", false, true)
		}
	})
	for _, a := range o.accounts {
		l := s.Window.Level(a.String())
		if l == nil {
			differ(a.String()+" is missing, bytes of its blocks", o.became(a, "", "").End.Bytes+o.peak[a.String()],
				uint64(0))
			continue
		}
		differ(a.String()+" blocks", l.WindowBlocks, o.became(a, "", ""))
		level := got[a.String()]
		differ(a.String()+" passed", l.Passed, report.BlockSum{Count: level.AllocCount - l.New.Count,
			Bytes: level.AllocBytes - l.New.Bytes})
		for _, by := range o.by {
			for _, r := range l.By(by).Rows {
				differ(a.String()+" "+by+" "+r.Key, r.WindowBlocks, o.became(a, by, r.Key))
			}
			o.compareRows(s.Group(by, a.String()), a, by, differ)
		}
	}
	return problems
}

// compareRows looks at a table of the summary. Keys that the window has nothing of are missing there.
func (o *windowOracle) compareRows(g *report.Group, a heap.Account, by string,
	differ func(what string, got, want any)) {
	var sum uint64
	for _, r := range g.Rows {
		name := a.String() + "|" + by + "|" + r.Key
		before, now := o.before[name], report.Row{}
		if o.rows[name] != nil {
			now = *o.rows[name]
		}
		differ(name+" allocations", r.AllocCount, now.AllocCount-before.AllocCount)
		differ(name+" frees", r.FreeCount, now.FreeCount-before.FreeCount)
		differ(name+" bytes", r.AllocBytes, now.AllocBytes-before.AllocBytes)
		differ(name+" peak", r.PeakBytes, o.atPeak[a.String()][by+"|"+r.Key])
		sum += r.PeakBytes
	}
	differ(a.String()+" "+by+" rows", sum, o.peak[a.String()])
}

// TestWindowStacks: the call stacks of a window are counted as its tables are.
func TestWindowStacks(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 19))
		w := randomWindow(rng, randomStream(seed, streamShape{events: 400}))
		opts := Options{Question: Question{Groupings: []string{"tag"}}, From: parseAt(t, w.from), To: parseAt(t, w.to),
			Ahead: windowSource(t, w.events)}
		set, err := Stacks(windowSource(t, w.events), opts, report.LevelDriver)
		if err != nil {
			t.Fatal(err)
		}
		opts.Ahead = windowSource(t, w.events)
		s, err := Summarize(windowSource(t, w.events), opts)
		if err != nil {
			t.Fatal(err)
		}
		var sum report.Level
		for _, r := range set.Rows {
			sum.PeakBytes += r.PeakBytes
			sum.LiveBytes += r.LiveBytes
			sum.AllocCount += r.AllocCount
			sum.AllocBytes += r.AllocBytes
			sum.FreeCount += r.FreeCount
		}
		d := s.Driver
		if sum != (report.Level{PeakBytes: d.PeakBytes, LiveBytes: d.LiveBytes, AllocCount: d.AllocCount,
			AllocBytes: d.AllocBytes, FreeCount: d.FreeCount}) {
			t.Errorf("seed %d: stacks %+v, level %+v", seed, sum, d)
		}
	}
}

// oomStream runs out of memory once, after ten blocks; one of them is freed behind that.
func oomStream() []trace.Event {
	var events []trace.Event
	add := func(e trace.Event) {
		e.Seq, e.Time, e.Level, e.Mem, e.Thread = uint64(len(events)+1), int64(len(events)+1)*1e9, cuda.LevelDriver,
			cuda.MemoryDevice, 1
		events = append(events, e)
	}
	for i := range 10 {
		add(trace.Event{Kind: trace.EventAlloc, Addr: uint64(i+1) << 20, Size: 1 << 20})
	}
	add(trace.Event{Kind: trace.EventAlloc, Size: 1 << 40, Status: 2})
	add(trace.Event{Kind: trace.EventFree, Addr: 1 << 20})
	add(trace.Event{Kind: trace.EventAlloc, Addr: 1 << 20, Size: 512})
	add(trace.Event{Kind: trace.EventFree, Addr: 1 << 20})
	add(trace.Event{Kind: trace.EventFree, Addr: 2 << 20})
	return events
}

// TestWindowEnds: moments that only a first reading can find.
func TestWindowEnds(t *testing.T) {
	for _, c := range []struct {
		from, to         string
		start, end, peak uint64
	}{
		{"", "oom", 0, 10 << 20, 10 << 20},
		{"oom", "", 10 << 20, 8 << 20, 10 << 20},
		{"oom", "teardown", 10 << 20, 9<<20 + 512, 10 << 20},
		{"teardown", "exit", 9<<20 + 512, 8 << 20, 9<<20 + 512},
		{"3500ms", "5500ms", 3 << 20, 5 << 20, 5 << 20},
		{"15s", "", 8 << 20, 8 << 20, 8 << 20},
	} {
		s, err := Summarize(windowSource(t, oomStream()), Options{From: parseAt(t, c.from), To: parseAt(t, c.to),
			Ahead: windowSource(t, oomStream())})
		if err != nil {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
			continue
		}
		l := s.Window.Level(report.LevelDriver)
		if l.Start.Bytes != c.start || l.End.Bytes != c.end || s.Driver.PeakBytes != c.peak {
			t.Errorf("%s to %s: from %d to %d, peak %d, want %d, %d and %d", c.from, c.to, l.Start.Bytes, l.End.Bytes,
				s.Driver.PeakBytes, c.start, c.end, c.peak)
		}
	}
}

func TestWindowRefuses(t *testing.T) {
	events := randomWindow(rand.New(rand.NewPCG(0, 0)), randomStream(3, streamShape{events: 50})).events
	events = slices.Insert(events, 10, trace.Event{Kind: trace.EventMark, Name: markFrom, Time: events[10].Time})
	events = slices.Insert(events, 20, trace.Event{Kind: trace.EventMark, Name: markTo, Time: events[20].Time})
	for _, c := range []struct{ from, to, want string }{
		{"mark:other", "", `--from mark:other: the trace has no mark "other"; it has`},
		{"", "mark:other", `--to mark:other: the trace has no mark "other"; it has`},
		{"mark:to", "mark:from", "--to mark:from does not come after --from mark:to"},
		{"step:7777", "", "the trace has no step 7777"},
		{"99h", "", "--from 99h is after the end of the run"},
		{"1s", "99h", "--to 99h is after the end of the run"},
		{"2s", "1s", "--from 2s comes after --to 1s"},
		{"mark:to", "0s", "--to 0s does not come after --from mark:to"},
		{"peak", "", "no window begins there"},
		{"exit", "", "no window begins there"},
		{"", "peak", "no window ends there"},
		{"oom:3", "", "--from oom:3: the trace has no moment oom:3: memory ran out"},
	} {
		_, err := Summarize(windowSource(t, events), Options{From: parseAt(t, c.from), To: parseAt(t, c.to),
			Ahead: windowSource(t, events)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s to %s: %v, want %q", c.from, c.to, err, c.want)
		}
	}
	_, err := Summarize(windowSource(t, events), Options{Question: Question{At: parseAt(t, "99h")},
		To: parseAt(t, "mark:from")})
	if err == nil || !strings.Contains(err.Error(), "--at 99h") {
		t.Errorf("a moment behind the window: %v", err)
	}
}
