package analyzer

import (
	"fmt"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
	"memtrace/internal/moment"
	"memtrace/trace"
)

// TestDiffOfRanks: a run on one device and the same on another differ in nothing, neither in the devices nor in the
// threads that are named after them.
func TestDiffOfRanks(t *testing.T) {
	rank := func(device int16) *report.Summary {
		src := &memorySource{end: &trace.End{}}
		for _, e := range randomStream(3, streamShape{events: 300}) {
			e.Device = device
			src.events = append(src.events, e)
		}
		fillTables(&src.tables)
		for _, id := range []trace.ThreadID{2, 5} {
			src.tables.AddThread(trace.Thread{ID: id, TID: 100 + int32(device),
				Name: fmt.Sprintf("pt_autograd_%d", device)})
		}
		s, err := Summarize(src, Options{Question: Question{Groupings: []string{"device", "thread", "api"}}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	d := diff.New(rank(0), rank(1))
	if d.Verdict.Bytes.Delta != 0 || d.Verdict.Bytes.New == 0 {
		t.Errorf("%+v", d.Verdict)
	}
	for _, g := range d.Groups {
		if g.Unchanged != len(g.Rows) || len(g.Rows) == 0 {
			t.Errorf("by %s, %s: %+v", g.By, g.Level, g.Rows)
		}
	}
	for _, l := range d.Levels {
		if l.PeakBytes.Delta != 0 || l.Device != "all" && l.Device != "1" {
			t.Errorf("%+v", l)
		}
	}
	if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes,
		"Device 0 of the base is compared with device 1 of the new run.") {
		t.Errorf("notes: %s", notes)
	}
	if d := diff.New(rank(1), rank(1)); strings.Contains(strings.Join(d.Notes, "\n"), "is compared with") {
		t.Errorf("equal devices are paired: %q", d.Notes)
	}
}

// TestDiffBetweenMoments: the sides are what was live at the moments, whatever the peaks were.
func TestDiffBetweenMoments(t *testing.T) {
	at := func(name string) *report.Summary {
		src := &memorySource{events: randomStream(6, streamShape{events: 400}), end: &trace.End{},
			info: trace.Info{"process.pid": "7", "process.start_unix_ns": "1700000000000000000"}}
		fillTables(&src.tables)
		s, err := Summarize(src,
			Options{Question: Question{Groupings: []string{"tag", "api"}, At: must(moment.Parse(name))}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	base, changed := at("5s"), at("exit")
	d := diff.New(base, changed)
	if !d.SameRun || d.Base.Moment != "5s" || d.New.Moment != "exit" || d.Base.TimeNS != 5e9 {
		t.Errorf("same run %v, %s at %d, %s", d.SameRun, d.Base.Moment, d.Base.TimeNS, d.New.Moment)
	}
	for _, l := range d.Levels {
		if l.Level == "driver" && l.Device == "all" && (l.PeakBytes.Base != base.At.Driver.LiveBytes ||
			l.PeakBytes.New != changed.At.Driver.LiveBytes) {
			t.Errorf("%+v, want %d and %d", l.PeakBytes, base.At.Driver.LiveBytes, changed.At.Driver.LiveBytes)
		}
	}
	for _, g := range d.Groups {
		var sums [2]uint64
		for _, r := range g.Rows {
			sums[0], sums[1] = sums[0]+r.PeakBytes.Base, sums[1]+r.PeakBytes.New
		}
		want := [2]uint64{base.At.Driver.LiveBytes, changed.At.Driver.LiveBytes}
		if g.Level == "framework" {
			want = [2]uint64{base.At.Framework.LiveBytes, changed.At.Framework.LiveBytes}
		}
		if sums != want {
			t.Errorf("rows by %s of the %s level hold %d, want %d", g.By, g.Level, sums, want)
		}
	}
}

// TestRowsThatHoldTheSameAreUnchanged: more allocations in between make no growth, and nothing is new that holds
// nothing.
func TestRowsThatHoldTheSameAreUnchanged(t *testing.T) {
	group := func(rows ...report.Row) *report.Summary {
		return &report.Summary{Driver: report.Level{AllocCount: 1},
			Groups: []report.Group{{By: "tag", Level: "driver", Rows: rows}}}
	}
	base := group(report.Row{Key: "same", PeakBytes: 5, LiveBytes: 1, AllocCount: 1},
		report.Row{Key: "gone", PeakBytes: 2}, report.Row{Key: "shrank", PeakBytes: 4},
		report.Row{Key: "once", AllocCount: 3})
	changed := group(report.Row{Key: "same", PeakBytes: 5, LiveBytes: 1, AllocCount: 900, AllocBytes: 90},
		report.Row{Key: "new", PeakBytes: 1}, report.Row{Key: "shrank", PeakBytes: 3},
		report.Row{Key: "idle", AllocCount: 3},
		report.Row{Key: "left", LiveBytes: 7, AllocCount: 1})
	want := map[string]string{"same": diff.StateSame, "gone": diff.StateGone, "shrank": diff.StateShrank,
		"once": diff.StateSame, "new": diff.StateNew, "idle": diff.StateSame, "left": diff.StateNew}
	g := diff.New(base, changed).Groups[0]
	for _, r := range g.Rows {
		if r.State != want[r.Key] {
			t.Errorf("%s is %s, want %s", r.Key, r.State, want[r.Key])
		}
	}
	if g.Unchanged != 3 || len(g.Rows) != len(want) {
		t.Errorf("%d of %d rows are unchanged", g.Unchanged, len(g.Rows))
	}
}

// trained is a model of layers, some of them with a mask, whose blocks are larger than what lies in them.
func trained(layers, masks int, rounding uint64) *report.Training {
	t := &report.Training{}
	for i := range layers {
		t.Parameters = append(t.Parameters, report.Parameter{Name: fmt.Sprintf("net.blocks.%d.up.weight", i),
			Category: "parameter", Bytes: 400, BlockBytes: 512, Gradient: 400, GradBlock: 512,
			States: []report.State{{Name: "exp_avg", Bytes: 400, BlockBytes: 512 + rounding}}})
	}
	for i := range masks {
		t.Parameters = append(t.Parameters, report.Parameter{Name: fmt.Sprintf("net.blocks.%d.mask", i),
			Category: "buffer", Bytes: 1024, BlockBytes: 1024})
	}
	return t
}

// TestDiffVerdict: new buffers of repeated modules are one cause, and rows that went the other way are none.
func TestDiffVerdict(t *testing.T) {
	side := func(peak, grown, shrunk uint64, masks int) *report.Summary {
		return &report.Summary{Framework: report.Level{PeakBytes: peak, AllocCount: 1}, Training: trained(6, masks, 0),
			Groups: []report.Group{{By: "site", Level: "framework",
				Rows: []report.Row{{Key: "a.py:1 f", PeakBytes: grown}, {Key: "b.py:2 g", PeakBytes: shrunk},
					{Key: report.NoStack, PeakBytes: peak - grown - shrunk}}}}}
	}
	d := diff.New(side(20000, 1000, 5000, 0), side(26144, 7000, 1000, 6))
	v := d.Verdict
	if v.Level != "framework" || v.Bytes.Delta != 6144 || v.Bytes.Percent == nil || *v.Bytes.Percent < 30.7 ||
		*v.Bytes.Percent > 30.8 {
		t.Fatalf("%+v", v)
	}
	want := []diff.Cause{{By: "parameters", Kind: "buffer", Name: "net.blocks.{0..5}.mask", State: diff.StateNew,
		Count: 6, Delta: 6144}, {By: "site", Name: "a.py:1 f", State: diff.StateGrew, Count: 1, Delta: 6000}}
	if fmt.Sprint(v.Causes) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", v.Causes, want)
	}
	if same := diff.New(side(20000, 1000, 5000, 6), side(20000, 1000, 5000, 6)).Verdict; same.Bytes.Delta != 0 ||
		len(same.Causes) != 0 {
		t.Errorf("%+v", same)
	}
	list := diff.FoldParameterChanges(diff.New(side(1, 0, 0, 0), side(1, 0, 0, 6)).Parameters)
	if len(list) != 2 || list[0].Count != 6 || list[0].Row.Delta() != 6144 || list[0].Least != 1024 ||
		list[1].Row.State != diff.StateSame || list[1].Count != 6 {
		t.Errorf("%+v", list)
	}
}

// TestRoundingIsTold: tensors of the same sizes in larger blocks are no growth of the model.
func TestRoundingIsTold(t *testing.T) {
	base, changed := &report.Summary{Training: trained(4, 0, 0)}, &report.Summary{Training: trained(4, 0, 1024)}
	notes := strings.Join(diff.New(base, changed).Notes, "\n")
	if !strings.Contains(notes,
		"Optimizer state: the tensors have the same sizes in both runs, 1.56 KiB in total; their blocks are 4.00 KiB larger in the new run") {
		t.Errorf("notes: %s", notes)
	}
	if strings.Contains(notes, "Gradients") || len(diff.RoundingNotes(base.Training, base.Training)) != 0 ||
		len(diff.RoundingNotes(base.Training, trained(5, 0, 9))) != 0 {
		t.Errorf("equal blocks, or tensors of other sizes, are told: %s", notes)
	}
}

// Of two layers that grew by the same amount the verdict named one, and of ten that each had a tenth of the growth
// none.
func TestDiffNamesWhatIsAlike(t *testing.T) {
	side := func(weights ...uint64) *report.Summary {
		s := &report.Summary{Training: &report.Training{}, Framework: report.Level{AllocCount: 1},
			Groups: []report.Group{{By: "site", Level: "framework"}}}
		for i, bytes := range weights {
			s.Training.Parameters = append(s.Training.Parameters, report.Parameter{Category: "parameter", Bytes: bytes,
				Name: fmt.Sprintf("%c.weight", 'a'+i), BlockBytes: bytes})
			s.Groups[0].Rows = append(s.Groups[0].Rows, report.Row{Key: fmt.Sprintf("%c.py:1 f", 'a'+i),
				PeakBytes: bytes})
			s.Framework.PeakBytes += bytes
		}
		return s
	}
	var few, many, grown [10]uint64
	for i := range few {
		few[i], many[i] = uint64(1000*(i+1)), uint64(1000*(i+1))
		grown[i] = few[i] + 500
	}
	few[1], few[2], few[3] = few[1]+600, few[2]+600, few[3]+100
	for _, c := range []struct {
		changed [10]uint64
		alike   string
		count   int
	}{{few, "[c]", 1}, {grown, "[b c]", 9}} {
		causes := diff.New(side(many[:]...), side(c.changed[:]...)).Verdict.Causes
		if len(causes) != 2 {
			t.Fatalf("%+v", causes)
		}
		for _, cause := range causes {
			names := strings.NewReplacer(".weight", "", ".py:1 f", "").Replace(fmt.Sprint(cause.Alike))
			if names != c.alike || cause.AlikeCount != c.count {
				t.Errorf("%+v, want %s of %d", cause, c.alike, c.count)
			}
		}
	}
}
