package tables

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/guest"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/internal/rules/rulefile"
	"memtrace/trace"
)

const byCategory = "category"

func open(t testing.TB, raw []byte) *trace.Reader {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rank replays a trace for its tables.
func rank(t testing.TB, number int32, raw []byte) *Rank {
	t.Helper()
	set, err := rulefile.Open(rulefile.Default)
	if err != nil {
		t.Fatal(err)
	}
	rules := []profile.RuleGrouping{{Name: byCategory, Rules: set}}
	s, sets := replayed(t, raw, "", rules)
	r := NewRank(number, "trace.bin", s, sets)
	for _, name := range s.NamedMoments() {
		_, sets := replayed(t, raw, name, rules)
		r.AddMoment(name, sets)
	}
	return r
}

// replayed is the report of a trace at a moment, "" for none, and what the levels held then.
func replayed(t testing.TB, raw []byte, at string, rules []profile.RuleGrouping) (*report.Summary,
	[]*analyzer.StackSet) {
	t.Helper()
	then, err := moment.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	q := analyzer.Question{Groupings: []string{"tag"}, At: then}
	options := analyzer.Options{Question: q}
	if len(rules) > 0 {
		options.Training, options.Ahead, options.RuleSets = true, open(t, raw), rules
	}
	p, err := analyzer.Replay(open(t, raw), options)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s, err := p.Report(q)
	if err != nil {
		t.Fatal(err)
	}
	if q.Groupings = []string{"tag"}; len(rules) > 0 {
		q.Groupings = Labels(byCategory)
	}
	var sets []*analyzer.StackSet
	for _, level := range []string{report.LevelFramework, report.LevelDriver} {
		labelled, err := p.Stacks(q, level)
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, labelled)
	}
	return s, sets
}

// written are all tables of some ranks, by name.
func written(t testing.TB, traces ...[]byte) map[string][]byte {
	t.Helper()
	var outs []io.Writer
	for range All {
		outs = append(outs, new(bytes.Buffer))
	}
	w := NewWriter("test", All, outs)
	for i, raw := range traces {
		r := rank(t, int32(i), raw)
		if err := w.Add(r); err != nil {
			t.Fatal(err)
		}
		follow(t, w, r, raw)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte)
	for i, table := range All {
		files[table.Name] = outs[i].(*bytes.Buffer).Bytes()
	}
	return files
}

func follow(t testing.TB, w *Writer, r *Rank, raw []byte) {
	t.Helper()
	src := open(t, raw)
	d := w.Detail(r, src)
	f, err := analyzer.Follow(src, analyzer.Options{Question: analyzer.Question{Groupings: []string{"tag"}}}, d)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := d.End(f); err != nil {
		t.Fatal(err)
	}
}

func rowsOf[T any](t testing.TB, file []byte) []T {
	t.Helper()
	rows, err := parquet.Read[T](bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestTablesAddUpToTheReport: for every trace of the report's own tests, profiles, blocks, events, tags, samples and
// runs have the report's figures of both levels, to the byte.
func TestTablesAddUpToTheReport(t *testing.T) {
	tried := 0
	for name, raw := range guest.ReportTraces(t) {
		s := rank(t, 0, raw).summary
		files := written(t, raw)
		runs := rowsOf[Run](t, files["runs"])
		if len(runs) != 1 {
			t.Fatalf("%s: %d runs", name, len(runs))
		}
		r := runs[0]
		for level, want := range map[string][5]int64{
			report.LevelFramework: {r.FrameworkPeak, r.FrameworkLive, r.FrameworkSum, r.FrameworkAllocs,
				int64(s.Framework.FreeCount)},
			report.LevelDriver: {r.DriverPeak, r.DriverLive, r.DriverSum, r.DriverAllocs, int64(s.Driver.FreeCount)},
		} {
			of := s.Framework
			if level == report.LevelDriver {
				of = s.Driver
			}
			figures := [5]int64{int64(of.PeakBytes), int64(of.LiveBytes), int64(of.AllocBytes), int64(of.AllocCount),
				int64(of.FreeCount)}
			if want != figures {
				t.Errorf("%s: runs has %d at the level %s, the report %d", name, want, level, figures)
			}
			if of.AllocCount > 0 {
				tried++
			}
			check := func(table string, got []int64) {
				t.Helper()
				want := figures[:min(len(got), len(figures))]
				if table == "blocks" { // their peak is the events'
					want = slices.Concat([]int64{0}, want[1:])
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: %s has %d at the level %s, the report %d", name, table, got, level, want)
				}
			}
			check("profiles", sumShares(rowsOf[Share](t, files["profiles"]), level))
			check("events", sumEvents(rowsOf[Event](t, files["events"]), level))
			check("blocks", sumBlocks(rowsOf[Block](t, files["blocks"]), level))
			check("tags", sumTags(rowsOf[Tag](t, files["tags"]), level))
			check("samples", highest(rowsOf[Sample](t, files["samples"]), level))
		}
	}
	if tried < 20 {
		t.Errorf("only %d levels had allocations", tried)
	}
}

// sumShares returns bytes at the peak and at the end.
func sumShares(rows []Share, level string) []int64 {
	sums := make([]int64, 2)
	for _, r := range rows {
		if r.Level == level && r.Moment == momentPeak {
			sums[0] += r.Bytes
		} else if r.Level == level && r.Moment == momentExit {
			sums[1] += r.Bytes
		}
	}
	return sums
}

// sumEvents returns the highest and last live bytes, bytes and number of allocations, and the number of frees.
func sumEvents(rows []Event, level string) []int64 {
	sums := make([]int64, 5)
	for _, r := range rows {
		if r.Level != level {
			continue
		}
		sums[0], sums[1] = max(sums[0], r.Live), r.Live
		if r.Alloc {
			sums[2] += r.Bytes
			sums[3]++
		} else {
			sums[4]++
		}
	}
	return sums
}

// sumBlocks returns the same without the peak.
func sumBlocks(rows []Block, level string) []int64 {
	sums := make([]int64, 5)
	for _, r := range rows {
		if r.Level != level {
			continue
		}
		sums[2] += r.Bytes
		sums[3]++
		if r.End == nil {
			sums[1] += r.Bytes
		} else {
			sums[4]++
		}
	}
	return sums
}

func sumTags(rows []Tag, level string) []int64 {
	sums := make([]int64, 5)
	for _, r := range rows {
		if r.Level == level {
			for i, v := range []int64{r.Peak, r.Live, r.Sum, r.Allocs, r.Frees} {
				sums[i] += v
			}
		}
	}
	return sums
}

func highest(rows []Sample, level string) []int64 {
	most := int64(0)
	for _, r := range rows {
		if r.Level == level {
			most = max(most, r.Peak)
		}
	}
	return []int64{most}
}

// TestStacksAreTheSameInAllRanks: two ranks whose traces number their stacks differently have the same ids, each stack
// and each frame stands once, and every id that a row has stands there.
func TestStacksAreTheSameInAllRanks(t *testing.T) {
	traces := guest.ReportTraces(t)
	a, b := traces["sites.txtar trace"], traces["sites-tags.txtar trace"]
	if a == nil || b == nil {
		t.Fatal("the traces have other names now")
	}
	files := written(t, a, b, a)
	ranks := make(map[int64]map[int32]bool)
	for _, r := range rowsOf[Share](t, files["profiles"]) {
		if ranks[r.Stack] == nil {
			ranks[r.Stack] = make(map[int32]bool)
		}
		ranks[r.Stack][r.Rank] = true
	}
	frames := make(map[int64]bool)
	for _, f := range rowsOf[Frame](t, files["frames"]) {
		if frames[f.Frame] {
			t.Errorf("frame %d stands twice", f.Frame)
		}
		frames[f.Frame] = true
	}
	stacks := make(map[int64]bool)
	for _, s := range rowsOf[Stack](t, files["stacks"]) {
		if stacks[s.Stack] {
			t.Errorf("stack %d stands twice", s.Stack)
		}
		stacks[s.Stack] = true
		for _, f := range s.Frames {
			if !frames[f] {
				t.Errorf("stack %d has the frame %d, which is not in frames", s.Stack, f)
			}
		}
	}
	shared := 0
	for stack, of := range ranks {
		if !stacks[stack] {
			t.Errorf("profiles has the stack %d, which is not in stacks", stack)
		}
		if of[0] != of[2] {
			t.Errorf("stack %d is in one of two ranks with the same trace", stack)
		}
		if stack != 0 && of[0] && of[1] {
			shared++
		}
	}
	if shared == 0 {
		t.Error("no stack of two ranks is the same")
	}
}

// TestColumnsAreDocumented: docs/export.md names every table, and in its row every column.
func TestColumnsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/export.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` | "); ok {
			rows[name] += rest
		}
	}
	for _, table := range All {
		for _, column := range parquet.NewSchema("", parquet.SchemaOf(reflect.New(table.row).Interface())).Columns() {
			name := column[0]
			for _, level := range []string{"framework_", "driver_"} { // of runs, named once for both
				if rest, ok := strings.CutPrefix(name, level); ok && table.Name == "runs" {
					name = "_" + rest
				}
			}
			if !strings.Contains(rows[table.Name], "`"+name+"`") {
				t.Errorf("docs/export.md: the row of the table %s lacks the column `%s`", table.Name, name)
			}
		}
	}
}

// TestMemoryIsBounded: what a Writer keeps does not grow with the rows: behind three row groups of events and blocks
// it is as much as behind one, and below 100 MB.
func TestMemoryIsBounded(t *testing.T) {
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w := discarding([]string{"events", "blocks"})
	const limit = 100 << 20
	rng := rand.New(rand.NewPCG(1, 2))
	for row := range int64(3*groupRows + groupRows/2) {
		end := row + 1
		address := int64(rng.Uint64() >> 16) // each another one: the dictionaries are as large as they can be
		w.events.add(Event{Time: row * 1000, Alloc: row%2 == 0, Level: "framework", Address: address,
			Bytes: int64(rng.IntN(1 << 20)), Stack: row % 3000, Live: row})
		w.blocks.add(Block{Start: row * 1000, End: &end, Level: "framework", Address: address, Bytes: 512})
		if row%(groupRows/2) == groupRows/2-1 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			if used := now.HeapAlloc - min(before.HeapAlloc, now.HeapAlloc); used > limit {
				t.Fatalf("%d bytes are in use behind %d rows of two tables, more than %d", used, row+1, limit)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
