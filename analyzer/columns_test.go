package analyzer

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// onlyRows hides the columns of a source.
type onlyRows struct{ trace.Source }

// openStory opens a trace file with the dictionary of the tests.
func openStory(t testing.TB, file []byte) *trace.Reader {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	tables := &trace.Tables{}
	fillTables(tables)
	for id := range trace.StackID(40) {
		tables.AddPyStack(trace.PyStack{ID: 50 + id, Frames: []trace.PyFrame{{Code: trace.CodeID(1 + id%7)},
			{Code: 9}}})
	}
	for i, name := range []string{"", "forward", "backward", "step", "zero_grad", "main", "loss", "init", "", "train"} {
		tables.AddCode(trace.Code{ID: trace.CodeID(i), Name: name, File: "/home/ada/train.py",
			FirstLine: int32(10 * i)})
	}
	r.Fill(tables, trace.Info{"python.version": "3.11", "python.eval": "900000-900100"})
	return r
}

// mixedRun makes the events of a program whose framework allocates in long runs, among them all that its blocks can do
// wrong: addresses that are live already, frees of nothing, events that come late, refusals, odd flags and sizes.
type mixedRun struct {
	*rand.Rand
	events    []trace.Event
	live      map[uint64]uint64 // size by address
	seq       uint64
	time      int64
	allocated uint64
	op        uint32
	restFrom  int // events before the first whose request is known
	losses    bool
}

func newMixedRun(seed uint64, events int) []trace.Event {
	m := &mixedRun{Rand: rand.New(rand.NewPCG(seed, 21)), live: map[uint64]uint64{}}
	rareEach := []int{60, 600}[seed%2] // by turns runs are short and long
	m.restFrom, m.losses = m.IntN(2*events), seed%5 == 4
	for len(m.events) < events {
		if len(m.events) == events/2 {
			m.add(trace.Event{Kind: trace.EventStep, Count: 7777})
		}
		if m.IntN(rareEach) == 0 {
			m.rare()
		} else {
			m.block()
		}
	}
	return m.events
}

func (m *mixedRun) add(e trace.Event) {
	m.seq++
	m.time += int64(m.IntN(2000))
	e.Seq, e.Time = m.seq, m.time
	if e.Thread == 0 {
		e.Thread = trace.ThreadID(1 + m.IntN(3))
	}
	if m.IntN(300) == 0 && m.seq > 20 && e.Kind != trace.EventLost {
		e.Seq, e.Flags = m.seq-uint64(m.IntN(20)), e.Flags|trace.FlagLate
		m.seq--
	}
	m.events = append(m.events, e)
}

// block allocates or frees a block of the framework.
func (m *mixedRun) block() {
	addr := uint64(0x7f00_0000_0000) + 512*uint64(m.IntN(300))
	e := trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, API: 64, Addr: addr,
		Size:  512 * uint64(1+m.IntN(4000)),
		Stack: trace.StackID(m.IntN(5)), PyStack: trace.StackID(m.IntN(2) * (50 + m.IntN(40))),
		Tag: trace.StringID(m.IntN(2) * (10 + m.IntN(4))), Device: int16(m.IntN(40) / 39)}
	size, taken := m.live[addr]
	if taken != (m.IntN(100) == 0) { // now and then the wrong one
		e.Kind, e.Size = trace.EventFree, size
		delete(m.live, addr)
		m.allocated -= size
	} else {
		m.allocated += e.Size - size
		m.live[addr] = e.Size
		m.operator(&e)
	}
	if m.IntN(10) > 0 {
		e.Allocated, e.Reserved = m.allocated, m.allocated|1<<20
	}
	m.add(e)
}

func (m *mixedRun) operator(e *trace.Event) {
	switch m.IntN(4) {
	case 0:
		m.op++
		e.Op, e.OpThread = m.op, uint16(m.IntN(2))
	case 1:
		e.Op, e.OpThread, e.Flags = 1+m.op-min(m.op, uint32(m.IntN(12))), uint16(m.IntN(2)), trace.FlagBackward
	}
	if len(m.events) >= m.restFrom {
		e.Rest = []uint64{0, 1, 1, 1, 129}[m.IntN(5)]
	}
}

// rare adds something that seldom happens.
func (m *mixedRun) rare() {
	block := trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, API: 64,
		Addr: 0x7f00_0000_0000 + 512*uint64(m.IntN(300)), Size: 1 << 12, Stack: 1}
	name := trace.Event{Kind: trace.EventName, Addr: 0x7f00_0000_0000 + 256*uint64(m.IntN(600)),
		Category: trace.Category(1 + m.IntN(6)), Name: trace.StringID(10 + m.IntN(4)), Handle: uint64(1 + m.IntN(3))}
	switch m.IntN(14) {
	case 0:
		block.Status = 2
	case 1:
		block.Flags = []trace.Flags{trace.FlagEstimated, trace.FlagReference, trace.FlagRuntimeOnly}[m.IntN(3)]
	case 2:
		block.Addr = 0
	case 3:
		block.Size = 1 << 60
	case 4:
		block.Mem = cuda.MemoryHost
	case 5:
		block.Level, block.Kind = cuda.LevelDriver, trace.EventKind(1+m.IntN(2))
	case 6:
		block.Kind, block.Addr = trace.EventFree, 512
	case 7:
		name.Addr, name.Category = 0, trace.CategoryStep
		m.add(name)
		return
	case 8:
		m.add(trace.Event{Kind: trace.EventStep, Count: uint64(len(m.events) / 100)})
		return
	case 9:
		m.add(trace.Event{Kind: trace.EventMark, Name: 20})
		return
	case 10:
		if m.losses {
			m.add(trace.Event{Kind: trace.EventLost, Count: uint64(m.IntN(3)), Size: uint64(m.IntN(3)), Handle: m.seq})
		}
		return
	case 11:
		m.add(trace.Event{Kind: trace.EventOOM, Level: cuda.LevelFramework, Size: 1 << 30, Allocated: m.allocated,
			Reserved: m.allocated})
		return
	default:
		m.add(name)
		return
	}
	m.add(block)
}

// Columns say what rows say, whatever is asked for: the rows' way is the one that is compared with the oracle.
func TestColumnsSayWhatRowsSay(t *testing.T) {
	t.Parallel()
	at := func(text string) moment.At {
		a, err := moment.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	sets := []profile.RuleGrouping{{Name: "category", Rules: madeSet(t)}}
	asked := map[string]Options{
		"totals": {}, "tag": {Question: Question{Groupings: []string{"tag"}}},
		"all":      {Question: Question{Groupings: profile.GroupingNames(), Sites: true}},
		"training": {Question: Question{Sites: true}, Training: true, RuleSets: sets},
		"time":     {Question: Question{At: at("1ms")}}, "teardown": {Question: Question{At: at("teardown")}},
		"step": {Question: Question{At: at("step:7777")}}, "since": {From: at("1ms")},
		"window": {From: at("1ms"), To: at("2ms")}, "over time": {Timeline: "tag"}, "device": {Devices: []int16{1}},
		"tagged": {Tag: "model"}, "history": {HistoryBlocks: 500},
		"exit": {Question: Question{At: at("exit"), Groupings: []string{"site"}}},
	}
	for seed := range uint64(randomStreams() / 6) {
		events := newMixedRun(seed, 2500)
		file := encodeEvents(t, events)
		for name, o := range asked {
			o.Symbols = symbol.Options{NoFiles: true}
			summary := func(hide func(*trace.Reader) trace.Source) *report.Summary {
				if o.Training || o.At.NeedsAhead() {
					o.Ahead = hide(openStory(t, file))
				}
				s, err := Summarize(hide(openStory(t, file)), o)
				if err != nil {
					t.Fatalf("seed %d, %s: %v", seed, name, err)
				}
				return s
			}
			want := summary(func(r *trace.Reader) trace.Source { return onlyRows{r} })
			got := summary(func(r *trace.Reader) trace.Source { return r })
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, %s: %s", seed, name, difference(asJSON(t, got), asJSON(t, want)))
			}
		}
	}
}

// Reading by columns costs no memory that grows with the trace, once the tables have grown to the live set.
func TestColumnsAllocateNothing(t *testing.T) {
	mallocs := func(steps int) uint64 {
		r := openStory(t, encodeEvents(t, trainingEvents(steps)))
		p, err := NewProfile(r, Options{Question: Question{Groupings: []string{"tag"}}})
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := p.replayer.replay(r, nil); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	mallocs(1)
	if short, long := mallocs(5), mallocs(65); long > short+3000 { // of 240,000 events more
		t.Errorf("%d allocations in 5 steps, %d in 65", short, long)
	}
}

// A run of a framework's blocks is replayed without a row: what the heap is told by rows is the few events that are
// something else.
func TestFrameworkRunsTakeNoRows(t *testing.T) {
	events := trainingEvents(3)
	r := openStory(t, encodeEvents(t, events))
	p, err := NewProfile(r, Options{Question: Question{Groupings: []string{"tag"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := soFar(p); err != nil {
		t.Fatal(err)
	}
	if c := p.replayer; c.rowRoom != nil || c.run.row != (trace.Event{}) {
		t.Errorf("rows were made: room for %d, %+v", len(c.rowRoom), c.run.row)
	}
}
