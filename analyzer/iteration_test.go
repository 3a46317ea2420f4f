package analyzer

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/profile"
	"memtrace/internal/rules"
	"memtrace/trace"
)

// Python stacks of the made training loop, by pass.
const (
	stackForward      trace.StackID = 401
	stackOptimizer    trace.StackID = 402
	stackMain         trace.StackID = 403
	stackForwardAgain trace.StackID = 404 // another place of the model
	stackForwardBy    trace.StackID = 405 // the model called by another line
)

const madeOptimizer = 0x5555

// madeLoop is a training loop whose blocks are all known: what iterations say of it can be counted in hindsight.
type madeLoop struct {
	rng    *rand.Rand
	src    *memorySource
	seq    uint64
	blocks []*madeBlock
	live   []*madeBlock
	ends   []int // events before the end of each iteration
	marked bool  // iterations begin with memtrace.step() instead of ending with the optimizer's
	pass   string
	run    int
	first  trace.StackID // of a forward pass, beyond stackForward
	last   int           // event of the last allocation

	refused []int // events before each time that memory ran out
}

type madeBlock struct {
	size           uint64
	addr           uint64
	pass           string
	run            int
	opened, closed int // events; closed -1: never
	temporary      bool
	category       trace.Category
	name           trace.StringID
	named          int // event
}

func newMadeLoop(seed uint64, marked bool) *madeLoop {
	l := &madeLoop{rng: rand.New(rand.NewPCG(seed, 3)), src: &memorySource{batch: 7}, marked: marked, pass: "none"}
	fillTables(&l.src.tables)
	for i, at := range []struct{ name, file string }{{"forward", "/app/model.py"}, {"step", "/v/torch/optim/adam.py"},
		{"main", "/app/train.py"}} {
		code := trace.CodeID(500 + i)
		l.src.tables.AddCode(trace.Code{ID: code, Name: at.name, QualName: at.name, File: at.file, FirstLine: 1})
		l.src.tables.AddPyStack(trace.PyStack{ID: stackForward + trace.StackID(i),
			Frames: []trace.PyFrame{{Code: code, Entry: true, Self: 0x9000 * uint64(1-min(i, 1))}}})
	}
	l.src.tables.AddPyStack(trace.PyStack{ID: stackForwardAgain,
		Frames: []trace.PyFrame{{Code: 500, Offset: 2, Entry: true, Self: 0x9000}}})
	l.src.tables.AddPyStack(trace.PyStack{ID: stackForwardBy,
		Frames: []trace.PyFrame{{Code: 500, Entry: true, Self: 0x9000}, {Code: 502}}})
	for i, name := range []string{"net.fc.weight", "exp_avg:net.fc.weight", "Adam", "net.act"} {
		l.src.tables.AddString(trace.StringID(600+i), name)
	}
	l.add(trace.Event{Kind: trace.EventName, Category: trace.CategoryModule, Handle: 0x9000, Name: 603})
	return l
}

func (l *madeLoop) add(e trace.Event) {
	l.seq++
	e.Seq, e.Time = l.seq, int64(l.seq)*10
	l.src.events = append(l.src.events, e)
}

// alloc makes a block in a pass of the loop: forward, backward, optimizer or none.
func (l *madeLoop) alloc(pass string) *madeBlock {
	b := &madeBlock{size: uint64(1+l.rng.IntN(1000)) << 9, addr: 0x7f00_0000_0000 + l.seq<<24, pass: pass,
		opened: len(l.src.events), closed: -1}
	again := trace.StackID(0) // a pass has several places in the model
	if pass == "forward" {
		again = []trace.StackID{stackForward, stackForwardAgain, stackForwardAgain, stackForwardBy}[l.rng.IntN(4)] -
			stackForward
	}
	const elsewhere = stackForwardBy - stackForward
	switch {
	case pass != "none" && pass != l.pass:
		l.pass, l.first = pass, again
		l.run++
	case pass == "forward" && (again == l.first || (again == elsewhere) != (l.first == elsewhere)): // the next pass
		l.first = again
		l.run++
	}
	b.run = l.run
	e := trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, Thread: 1,
		Addr: b.addr, Size: b.size, Stack: stackAllocator}
	switch pass {
	case "forward":
		e.PyStack = stackForward + again
	case "optimizer":
		e.PyStack = stackOptimizer
	case "backward":
		e.Thread = 2
	default:
		e.PyStack = stackMain
	}
	l.add(e)
	l.last = len(l.src.events) - 1
	l.blocks, l.live = append(l.blocks, b), append(l.live, b)
	return b
}

func (l *madeLoop) free(b *madeBlock) {
	b.closed, b.temporary = len(l.src.events), b.pass != "none" && b.run == l.run
	l.add(trace.Event{Kind: trace.EventFree, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, Thread: 1,
		Addr: b.addr})
	l.live = slices.DeleteFunc(l.live, func(other *madeBlock) bool { return other == b })
}

// tearDown takes in that no more comes: what a forward pass made is no longer freed by it.
func (l *madeLoop) tearDown() {
	for _, b := range l.blocks {
		b.temporary = b.temporary && (b.pass != "forward" || b.closed < l.last)
	}
}

// refuse ends a pass by running out of memory.
func (l *madeLoop) refuse() {
	l.refused = append(l.refused, len(l.src.events))
	l.run++
	l.add(trace.Event{Kind: trace.EventOOM, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, Thread: 1,
		Size: 1 << 40, Stack: stackAllocator})
}

func (l *madeLoop) freeSome() {
	if l.rng.IntN(16) == 0 {
		l.refuse()
	}
	for range l.rng.IntN(3) {
		if len(l.live) > 0 {
			l.free(l.live[l.rng.IntN(len(l.live))])
		}
	}
}

func (l *madeLoop) say(b *madeBlock, category trace.Category, name trace.StringID) {
	if b.closed < 0 && b.category == trace.CategoryNone {
		b.category, b.name, b.named = category, name, len(l.src.events)
		l.add(trace.Event{Kind: trace.EventName, Category: category, Addr: b.addr + b.size/2, Size: b.size - 1,
			Name: name})
	}
}

func (l *madeLoop) iterate(n int) {
	for i := range n {
		if l.marked {
			if i > 0 {
				l.ends = append(l.ends, len(l.src.events))
			}
			l.add(trace.Event{Kind: trace.EventStep, Count: uint64(100 + i)})
		}
		var gradients, states []*madeBlock
		for _, pass := range []string{"none", "forward", "backward", "optimizer"} {
			for range 2 + l.rng.IntN(6) {
				b := l.alloc(pass)
				switch {
				case pass == "backward" && l.rng.IntN(2) == 0:
					gradients = append(gradients, b)
				case pass == "optimizer" && l.rng.IntN(2) == 0:
					states = append(states, b)
				}
				if l.rng.IntN(4) == 0 {
					l.alloc("none") // another thread of the program ends no pass
				}
				l.freeSome()
			}
		}
		for _, b := range gradients {
			l.say(b, trace.CategoryGradient, 600)
		}
		for _, b := range states {
			l.say(b, trace.CategoryOptimizer, 601)
		}
		l.add(trace.Event{Kind: trace.EventName, Category: trace.CategoryStep, Handle: madeOptimizer,
			Size: uint64(i + 1), Name: 602})
		if !l.marked {
			l.ends = append(l.ends, len(l.src.events))
		}
	}
	l.freeSome()
}

func madeSet(t testing.TB) *rules.Set {
	return ruleSet(t, rules.FirstMatch,
		rule("G", text(rules.Name, "gradient:")), rule("S", text(rules.Name, "optimizer_state:exp_avg:")),
		rule("BT", oneOfWords(rules.Phase, "backward"), oneOfWords(rules.Lifetime, rules.Temporary)),
		rule("BL", oneOfWords(rules.Phase, "backward")),
		rule("FT", oneOfWords(rules.Phase, "forward"), oneOfWords(rules.Lifetime, rules.Temporary)),
		rule("FL", oneOfWords(rules.Phase, "forward"), text(rules.Module, "net.act")),
		rule("O", oneOfWords(rules.Phase, "optimizer")))
}

// category is what a block is to those who know all that happened until an iteration ended.
func (b *madeBlock) asOf(end int) string {
	temporary := b.temporary && b.closed < end
	switch {
	case b.category == trace.CategoryGradient && b.named < end:
		return "G"
	case b.category == trace.CategoryOptimizer && b.named < end:
		return "S"
	case b.pass == "backward" && temporary:
		return "BT"
	case b.pass == "backward":
		return "BL"
	case b.pass == "forward" && temporary:
		return "FT"
	case b.pass == "forward":
		return "FL"
	case b.pass == "optimizer":
		return "O"
	}
	return rules.Others
}

// hindsight counts one iteration slowly.
type hindsight struct {
	Peak, Forward, Backward, Optimizer uint64
	Held, Highest, End, Stayed         map[string]uint64
	Allocs, Frees                      uint64
}

func (l *madeLoop) hindsight(from, to int) hindsight {
	h := hindsight{Held: map[string]uint64{}, Highest: map[string]uint64{}, End: map[string]uint64{},
		Stayed: map[string]uint64{}}
	for _, b := range l.blocks {
		if b.opened < from && (b.closed < 0 || b.closed >= to) {
			h.Stayed[b.asOf(to)] += b.size
		}
	}
	for at := from - 1; at < to; at++ { // after the event at; from-1: before the first one
		held, total := map[string]uint64{}, uint64(0)
		pass := ""
		for _, b := range l.blocks {
			if b.opened == at && at >= from {
				pass = b.pass
				h.Allocs++
			}
			if b.closed == at && at >= from {
				h.Frees++
			}
			if b.opened <= at && (b.closed < 0 || b.closed > at) {
				held[b.asOf(to)] += b.size
				total += b.size
			}
		}
		if total > h.Peak {
			h.Peak, h.Held = total, held
		}
		for category, bytes := range held {
			h.Highest[category] = max(h.Highest[category], bytes)
		}
		switch pass {
		case "forward":
			h.Forward = max(h.Forward, total)
		case "backward":
			h.Backward = max(h.Backward, total)
		case "optimizer":
			h.Optimizer = max(h.Optimizer, total)
		}
		h.End = held
	}
	return h
}

// heldAfter is what was held after an event, by what is known of it at another one.
func (l *madeLoop) heldAfter(event, known int) map[string]uint64 {
	held := map[string]uint64{}
	for _, b := range l.blocks {
		if b.opened <= event && (b.closed < 0 || b.closed > event) {
			held[b.asOf(known)] += b.size
		}
	}
	return held
}

func byCategory(t *report.Training, held []uint64) map[string]uint64 {
	m := map[string]uint64{}
	for i, bytes := range held {
		if bytes > 0 {
			m[t.Categories[i]] = bytes
		}
	}
	return m
}

func bytesOf(m *report.IterationMoment) uint64 {
	if m == nil {
		return 0
	}
	return m.Bytes
}

// TestIterationsInHindsight: what iterations say while the trace is read is what a slow count says that knows every
// block's whole life.
func TestIterationsInHindsight(t *testing.T) {
	set := madeSet(t)
	for seed := range uint64(40) {
		l := newMadeLoop(seed, seed%3 == 2)
		l.iterate(1 + int(seed%5))
		l.tearDown()
		ahead := *l.src
		opts := Options{Question: Question{Groupings: []string{"category"}}, Training: true, Ahead: &ahead,
			RuleSets: []profile.RuleGrouping{{Name: "category", Rules: set}}}
		s, err := Summarize(l.src, opts)
		if err != nil {
			t.Fatal(err)
		}
		tr := s.Training
		wantBy := map[bool]string{false: report.IterationsByOptimizer, true: report.IterationsByStep}[l.marked]
		if tr.IterationsBy != wantBy || tr.Level != "framework" {
			t.Fatalf("seed %d: by %s of the %s", seed, tr.IterationsBy, tr.Level)
		}
		if want := min(len(l.refused), report.MaxOOMCategories); len(tr.OutOfMemory) != want {
			t.Fatalf("seed %d: memory ran out %d times, want %d", seed, len(tr.OutOfMemory), want)
		}
		from, ends := 0, append(slices.Clone(l.ends), len(l.src.events))
		for i, end := range ends {
			for n, event := range l.refused[:len(tr.OutOfMemory)] {
				if event < from || event >= end {
					continue
				}
				v, want := &tr.OutOfMemory[n], l.heldAfter(event-1, end)
				if got := byCategory(tr, v.Held); !reflect.DeepEqual(got, want) || v.Bytes != sumOfAll(want) ||
					v.TimeNS != l.src.events[event].Time {
					t.Errorf("seed %d: memory ran out %d: %v at %d, want %v", seed, n, got, v.TimeNS, want)
				}
			}
			want := l.hindsight(from, end)
			from = end
			if i == len(tr.Iterations) && want.Allocs+want.Frees == 0 {
				continue // nothing came after the last one
			}
			v := &tr.Iterations[i]
			got := hindsight{v.Peak.Bytes, bytesOf(v.Forward), bytesOf(v.Backward), bytesOf(v.Optimizer),
				byCategory(tr, v.Peak.Held), byCategory(tr, v.Highest), byCategory(tr, v.End), byCategory(tr, v.Stayed),
				v.AllocCount, v.FreeCount}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, iteration %d of %d:\n got %+v\nwant %+v", seed, i, len(ends), got, want)
			}
			wantNumber := uint64(i + 1)
			if l.marked {
				wantNumber = uint64(100 + i)
			}
			if v.Number != wantNumber || v.Ended != (i < len(l.ends)) {
				t.Errorf("seed %d: iteration %d has number %d, ended %v", seed, i, v.Number, v.Ended)
			}
		}
		checkTree(t, fmt.Sprintf("seed %d", seed), tr)
		checkSummary(t, fmt.Sprintf("seed %d", seed), s)
	}
}

// checkTree: the modules of the highest iteration add up to its moments.
func checkTree(t *testing.T, about string, tr *report.Training) {
	t.Helper()
	highest := &tr.Iterations[tr.Highest]
	for i := range tr.Iterations {
		if tr.Iterations[i].Peak.Bytes > highest.Peak.Bytes {
			t.Errorf("%s: iteration %d is higher than %d", about, i, tr.Highest)
		}
	}
	if tr.Modules == nil {
		t.Fatalf("%s: no modules", about)
	}
	for name, m := range map[string]*report.IterationMoment{"peak": &highest.Peak, "forward": highest.Forward,
		"backward": highest.Backward, "optimizer": highest.Optimizer} {
		if m != nil && !slices.Equal(tr.Modules.Moment(name), m.Held) {
			t.Errorf("%s: modules at %s hold %v, want %v", about, name, tr.Modules.Moment(name), m.Held)
		}
	}
	for i := range tr.Modules.Children {
		if n := &tr.Modules.Children[i]; n.Name != "net" && n.Name != report.NoModule {
			t.Errorf("%s: module %s", about, n.Name)
		}
	}
}

// checkSummary: the ledger's peak is that of the highest iteration, category by category.
func checkSummary(t *testing.T, about string, s *report.Summary) {
	t.Helper()
	highest := &s.Training.Iterations[s.Training.Highest]
	rows := map[string]uint64{}
	for _, r := range s.CategoriesBy("category").Rows {
		if r.Bytes > 0 {
			rows[r.Key] = r.Bytes
		}
	}
	if s.Framework.PeakBytes != highest.Peak.Bytes {
		t.Errorf("%s: the peak is %d, that of iterations %d", about, s.Framework.PeakBytes, highest.Peak.Bytes)
	}
	if got := byCategory(s.Training, highest.Peak.Held); s.Framework.PeakTimeNS == highest.Peak.TimeNS &&
		len(s.Training.Iterations) == s.Training.Highest+1 && !reflect.DeepEqual(got, rows) {
		t.Errorf("%s: iteration %v, ledger %v", about, got, rows)
	}
}

// TestNamesAfterIterations: what is named after the end of an iteration has its name there, too.
func TestNamesAfterIterations(t *testing.T) {
	l := newMadeLoop(2, true)
	weight := l.alloc("none")
	l.live = nil // nobody frees it
	l.iterate(4)
	l.say(weight, trace.CategoryGradient, 600)
	ahead := *l.src
	s, err := Summarize(l.src, Options{Question: Question{Groupings: []string{"category"}}, Training: true,
		Ahead: &ahead, RuleSets: []profile.RuleGrouping{{Name: "category", Rules: madeSet(t)}}})
	if err != nil {
		t.Fatal(err)
	}
	first := &s.Training.Iterations[0]
	if got := byCategory(s.Training, first.End)["G"]; got < weight.size {
		t.Errorf(
			"the first iteration ends with %d bytes of gradients, want the %d that were named at the end of the run among them", got, weight.size)
	}
}

// TestIterationsCountedInTurns: an iteration with more changes than are kept is counted in several turns; what needs no
// later name stays what it is.
func TestIterationsCountedInTurns(t *testing.T) {
	set := madeSet(t)
	for seed := range uint64(60) {
		l := newMadeLoop(seed, seed%3 == 2)
		l.iterate(3)
		ahead := *l.src
		p, err := NewProfile(l.src, Options{Question: Question{Groupings: []string{"category"}}, Training: true,
			Ahead: &ahead, RuleSets: []profile.RuleGrouping{{Name: "category", Rules: set}}})
		if err != nil {
			t.Fatal(err)
		}
		p.replayer.accounts.iterations.Turn = 1 + int(seed)
		s, err := soFar(p)
		if err != nil {
			t.Fatal(err)
		}
		from := 0
		for i, end := range l.ends {
			want, v := l.hindsight(from, end), &s.Training.Iterations[i]
			got := []uint64{v.Peak.Bytes, bytesOf(v.Forward), bytesOf(v.Backward), bytesOf(v.Optimizer),
				report.SumOf(v.Peak.Held), report.SumOf(v.End), report.SumOf(v.Stayed), v.AllocCount, v.FreeCount}
			if !slices.Equal(got, []uint64{want.Peak, want.Forward, want.Backward, want.Optimizer, want.Peak,
				sumOfAll(want.End), sumOfAll(want.Stayed), want.Allocs, want.Frees}) {
				t.Errorf("seed %d, iteration %d: %v, want %+v", seed, i, got, want)
			}
			from = end
		}
		checkTree(t, fmt.Sprintf("seed %d", seed), s.Training)
	}
}

func sumOfAll(held map[string]uint64) (sum uint64) {
	for _, bytes := range held {
		sum += bytes
	}
	return sum
}

func TestTrainingNeedsARehearsal(t *testing.T) {
	l := newMadeLoop(1, false)
	if _, err := Summarize(l.src, Options{Training: true}); err == nil {
		t.Error("training without rules and without the trace ahead")
	}
}
