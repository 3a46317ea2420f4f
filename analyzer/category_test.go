package analyzer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/internal/rules"
	"memtrace/trace"
)

func ruleSet(t testing.TB, mode rules.Mode, list ...rules.Rule) *rules.Set {
	t.Helper()
	set, err := rules.New("test", "", mode, list)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func rule(category string, conditions ...rules.Condition) rules.Rule {
	return rules.Rule{Category: category, Conditions: conditions}
}

func text(f rules.Field, texts ...string) rules.Condition {
	c := rules.Condition{Field: f}
	for _, text := range texts {
		c.Patterns = append(c.Patterns, rules.Pattern{Text: text})
	}
	return c
}

func oneOfWords(f rules.Field, list ...string) rules.Condition {
	return rules.Condition{Field: f, Words: list}
}

func bounds(t testing.TB, list ...string) rules.Condition {
	t.Helper()
	c := rules.Condition{Field: rules.Size}
	for _, text := range list {
		b, err := rules.ParseBound(text)
		if err != nil {
			t.Fatal(err)
		}
		c.Bounds = append(c.Bounds, b)
	}
	return c
}

// sums makes rows comparable whatever their order.
func sums(rows []report.Row) string {
	var list []string
	for _, r := range rows {
		if r.Key == report.Untagged || r.Key == report.UnknownLibrary {
			r.Key = "(unknown)"
		}
		peak, live := r.PeakBytesLower, r.LiveBytesLower
		if r.PeakBytesLower, r.LiveBytesLower = nil, nil; peak != nil {
			list = append(list, fmt.Sprintf("%+v, certain %d and %d", r, *peak, *live))
			continue
		}
		list = append(list, fmt.Sprintf("%+v", r))
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// TestCategoriesLikeGroupings: rules that repeat a grouping give its rows, also where cells were retired on the way.
func TestCategoriesLikeGroupings(t *testing.T) {
	all := oneOfWords(rules.Level, "driver", "framework")
	var sets []profile.RuleGrouping
	names := []string{"tag", "library", "api"}
	for _, name := range names {
		sets = append(sets, profile.RuleGrouping{Name: "by " + name,
			Rules: ruleSet(t, rules.FirstMatch, rule("{"+name+"}", all))})
	}
	for seed := range uint64(60) {
		src := &memorySource{events: randomStream(seed, streamShape{events: 400, wild: seed%2 == 0})}
		fillTables(&src.tables)
		s, err := summarizeKeeping(src,
			Options{Question: Question{Groupings: []string{"tag", "library", "api", "by tag", "by library", "by api"}},
				RuleSets: sets}, []int{0, 1, 10}[seed%3])
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			for _, level := range []string{"driver", "framework"} {
				want, got := s.Group(name, level), s.Group("by "+name, level)
				if want == nil {
					continue
				}
				if got, want := sums(got.Rows), sums(want.Rows); got != want {
					t.Fatalf("seed %d, %s by %s:\n%s", seed, level, name, difference(got, want))
				}
			}
		}
	}
}

// slowCategories keeps every live block and looks at all of them at every new peak.
type slowCategories struct {
	heap.NoopObserver
	matcher *rules.Matcher
	src     *memorySource
	live    map[uint32]heap.Block
	peak    map[heap.Account]uint64
	held    map[heap.Account]map[string]uint64
}

func (s *slowCategories) Opened(id uint32, b *heap.Block, _ *trace.Event) {
	s.live[id] = *b
	var total uint64
	held := make(map[string]uint64)
	for _, v := range s.live {
		if v.Account != b.Account {
			continue
		}
		total += v.Size
		subject := rules.Subject{Tag: s.src.tables.String(v.Tag), API: v.Call.String(), Kind: v.Mem.String(),
			Level: v.Account.String(), Size: v.Size}
		held[profile.CategoryKey(s.matcher.Match(&subject))] += v.Size
	}
	if total > s.peak[b.Account] {
		s.peak[b.Account], s.held[b.Account] = total, held
	}
}

func (s *slowCategories) Closed(id uint32, _ *heap.Block, _ *trace.Event) { delete(s.live, id) }

// TestCategoriesAgreeWithOracle: by tag, call, kind and size, in both modes; sums are those of the level to the byte.
func TestCategoriesAgreeWithOracle(t *testing.T) {
	list := []rules.Rule{
		rule("small driver", bounds(t, "<= 300"), oneOfWords(rules.Level, "driver")),
		rule("encoder", text(rules.Tag, "encoder")),
		rule("virtual", oneOfWords(rules.Kind, "vmm", "async")),
		rule("middle", bounds(t, ">= 2KiB", "< 60000")),
		rule("encoder", bounds(t, "> 1MiB")),
		rule("calls", text(rules.API, "Pitch", "reportMemory")),
	}
	double := false
	for seed := range uint64(60) {
		for _, mode := range []rules.Mode{rules.FirstMatch, rules.MultiMatch} {
			set := ruleSet(t, mode, list...)
			src := &memorySource{events: randomStream(seed, streamShape{events: 400})}
			fillTables(&src.tables)
			slow := &slowCategories{matcher: set.Matcher(), src: src, live: map[uint32]heap.Block{},
				peak: map[heap.Account]uint64{}, held: map[heap.Account]map[string]uint64{}}
			live := heap.NewHeap(slow, nil)
			for i := range src.events {
				live.Apply(&src.events[i])
			}
			other := ruleSet(t, rules.FirstMatch, rule("x", bounds(t, "= 77"))) // another set's sizes change nothing
			s, err := Summarize(src, Options{Question: Question{Groupings: []string{"c", "o"}, Entries: -1},
				RuleSets: []profile.RuleGrouping{{Name: "o", Rules: other}, {Name: "c", Rules: set}}})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range []heap.Account{heap.AccountDriver, heap.AccountFramework} {
				if g := s.Group("c", a.String()); g != nil {
					checkGroupAtPeak(t, fmt.Sprintf("seed %d, %s, %s", seed, mode, a), g, slow.held[a], slow.peak[a])
				}
			}
			checkCategories(t, s.CategoriesBy("c"), s.Main().PeakBytes, mode)
			double = double || s.CategoriesBy("c").ExcessBytes > 0
		}
	}
	if !double {
		t.Error("no block was in two categories")
	}
}

func checkGroupAtPeak(t *testing.T, what string, g *report.Group, want map[string]uint64, peak uint64) {
	t.Helper()
	var sum uint64
	for _, r := range g.Rows {
		if r.PeakBytes != want[r.Key] {
			t.Fatalf("%s: %s holds %d, want %d", what, r.Key, r.PeakBytes, want[r.Key])
		}
		sum += r.PeakBytes
	}
	if sum != peak {
		t.Fatalf("%s: rows add up to %d, want %d", what, sum, peak)
	}
}

// checkCategories checks what Categories promises of its sums and its order.
func checkCategories(t *testing.T, v *report.Categories, peak uint64, mode rules.Mode) {
	t.Helper()
	var sum uint64
	for i, row := range v.Rows {
		var entries uint64
		for _, e := range row.Entries {
			entries += e.Bytes
		}
		if entries != row.Bytes || uint64(len(row.Entries)) != row.EntryCount {
			t.Errorf("%d entries of %s add up to %d, want %d of %d", len(row.Entries), row.Key, entries, row.EntryCount,
				row.Bytes)
		}
		if i > 0 && row.Key != rules.Others && row.Bytes > v.Rows[i-1].Bytes {
			t.Errorf("%s stands behind less", row.Key)
		}
		sum += row.Bytes
	}
	if last := v.Rows[len(v.Rows)-1]; last.Key != rules.Others {
		t.Errorf("%s stands last", last.Key)
	}
	if v.TrackedBytes != peak || v.SumBytes != sum || v.ExcessBytes != sum-peak || mode == rules.FirstMatch &&
		sum != peak {
		t.Errorf("%s: categories add up to %d: %+v, peak %d", mode, sum, v, peak)
	}
}

// TestMultiMatchIsTold: the excess is in the notes, with its size.
func TestMultiMatchIsTold(t *testing.T) {
	const framework = cuda.LevelFramework
	src := &memorySource{events: []trace.Event{
		{Kind: trace.EventAlloc, Seq: 1, Level: framework, Mem: cuda.MemoryDevice, Addr: 0x1000, Size: 4096, Tag: 12,
			Thread: 1},
		{Kind: trace.EventAlloc, Seq: 2, Level: framework, Mem: cuda.MemoryDevice, Addr: 0x3000, Size: 1024, Tag: 10,
			Thread: 1},
		{Kind: trace.EventAlloc, Seq: 3, Level: framework, Mem: cuda.MemoryDevice, Addr: 0x4000, Size: 512, Thread: 1},
	}}
	fillTables(&src.tables)
	set := ruleSet(t, rules.MultiMatch, rule("Model", text(rules.Tag, "model")),
		rule("Encoder", text(rules.Tag, "encoder")))
	s, err := Summarize(src, Options{Question: Question{Groupings: []string{"c"}, Expected: 5000, Entries: 1},
		RuleSets: []profile.RuleGrouping{{Name: "c", Rules: set}}})
	if err != nil {
		t.Fatal(err)
	}
	v := s.CategoriesBy("c")
	var got []string
	for _, r := range v.Rows {
		got = append(got, fmt.Sprint(r.Key, " ", r.Bytes, " ", len(r.Entries), "/", r.EntryCount))
	}
	if want := []string{"Model 5120 1/2", "Encoder 4096 1/1", "Others 512 1/1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if v.TrackedBytes != 5632 || v.ExcessBytes != 4096 {
		t.Errorf("%+v", v)
	}
	if u := cmp.Or(v.Untrackable, &report.Untrackable{}); *u !=
		(report.Untrackable{From: report.UntrackableExpected, ReportedBytes: 5000, TrackedBytes: 5632, Bytes: -632}) {
		t.Errorf("untrackable %+v", u)
	}
	if !slices.ContainsFunc(s.Notes, func(n string) bool {
		return strings.Contains(n, "9.50 KiB, which is 4.00 KiB more than the 5.50 KiB")
	}) {
		t.Errorf("notes %q", s.Notes)
	}
	if l := s.Ledger("c"); l.WholeBytes != 5632 || l.Rows[0].Key != "Model + Encoder" {
		t.Errorf("ledger %+v", l)
	}
}

// TestWordsOfRules: rules know every kind of memory and every level by the name that blocks have.
func TestWordsOfRules(t *testing.T) {
	for kind := cuda.MemoryKind(0); kind.String() != "unknown" || kind == cuda.MemoryUnknown; kind++ {
		if !slices.Contains(rules.Words(rules.Kind), kind.String()) {
			t.Errorf("rules do not know the kind %s", kind)
		}
	}
	for _, word := range rules.Words(rules.Kind) {
		if _, known := cuda.ParseMemoryKind(word); !known {
			t.Errorf("there is no kind %s", word)
		}
	}
	if want := []string{heap.AccountDriver.String(), heap.AccountFramework.String()}; !slices.Equal(
		rules.Words(rules.Level), want) {
		t.Errorf("levels %q, want %q", rules.Words(rules.Level), want)
	}
}

// TestTooManySizes: boundaries of all sets together are bounded.
func TestTooManySizes(t *testing.T) {
	var sets []profile.RuleGrouping
	for n := range 2 {
		var list []rules.Rule
		for i := range 200 {
			c := rules.Condition{Field: rules.Size}
			for k := range 199 {
				c.Bounds = append(c.Bounds, rules.Bound{Op: ">=", Bytes: uint64(n*1_000_000 + i*1000 + k)})
			}
			list = append(list, rule("x", c))
		}
		sets = append(sets, profile.RuleGrouping{Name: fmt.Sprint("g", n),
			Rules: ruleSet(t, rules.FirstMatch, list...)})
	}
	if _, err := Summarize(&memorySource{}, Options{RuleSets: sets}); err == nil ||
		!strings.Contains(err.Error(), "65535 are allowed") {
		t.Errorf("%v", err)
	}
}
