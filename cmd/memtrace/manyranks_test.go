package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"memtrace/analyzer/report"
	"memtrace/internal/runprofile"
)

const gib = 1 << 30

// madeRank is a rank of a run that never was: a training of a pipeline with two stages, on hosts with 8 devices.
type madeRank struct {
	rank, world int
	iterations  int // 0: 1, and half as many categories
	job         string
	batch       float64 // times as large as usual; 0: 1
	leak        uint64  // bytes that each of the 100 iterations keeps
	stray       bool    // it has a context on another rank's device
}

// held is what the rank holds for each purpose at its peak, a bit more or less than the others of its stage.
func (r *madeRank) held() []uint64 {
	scale, stage := 1+float64(r.rank*7919%1000)/1e6, float64(r.rank%2)
	batch := r.batch
	if batch == 0 {
		batch = 1
	}
	features := (10 + 2*stage) * batch * gib * scale
	held := []uint64{4 * gib, 8 * gib, uint64(features), gib + 100*r.leak}
	if r.iterations > 0 {
		held = append(held, gib/2, gib/4, gib/8, gib/16)
	}
	return held
}

// during is what it holds at the peak of an iteration, of which the last one's is the highest. Activations differ a bit
// from iteration to iteration, in each rank otherwise.
func (r *madeRank) during(iteration int) []uint64 {
	held, ended := r.held(), max(r.iterations, 1)-1
	if iteration < ended {
		held[2] -= uint64((r.rank*31+iteration*17)%97) << 16
		held[3] -= 100 * r.leak * uint64(ended-iteration) / uint64(ended)
	}
	return held
}

var (
	purposes = []string{"Parameters", "Optimizer state", "Feature maps", "not categorized", "Gradients", "Workspace",
		"Temporary", "Intermediate gradients"}
	places = []string{"train.py:10 build", "train.py:12 build", "train.py:20 step", "train.py:31 log"}
)

// summary is the report of the rank.
func (r *madeRank) summary() *report.Summary {
	held := r.held()
	level := report.Level{AllocCount: 1000, FreeCount: 990, PeakBytes: report.SumOf(held), LiveBytes: held[3],
		PeakTimeNS: 5e9}
	local := int16(r.rank % 8)
	began := time.Date(2026, 11, 27, 8, 0, r.rank%30, 0, time.UTC)
	s := &report.Summary{Framework: level, Driver: level, Versions: map[string]string{"torch": "2.7.1"},
		Health: report.Health{Complete: true, Unseen: []string{}}, Notes: []string{}, By: []string{"site"},
		Trend: &report.Trend{Level: report.LevelFramework, Kind: report.GrowthNone},
		Process: report.Process{PID: int64(1000 + r.rank), Host: fmt.Sprintf("node%03d", r.rank/8), Rank: &r.rank,
			WorldSize: r.world, Job: r.job, Started: began.Format(time.RFC3339Nano), DurationNS: 1e12,
			Ended: report.EndedClean, Args: []string{}}}
	s.Devices = []report.Device{{Index: local, TotalBytes: 80 * gib, Driver: level, Framework: level}}
	if r.stray {
		context := report.Level{AllocCount: 1, PeakBytes: 500 << 20, LiveBytes: 500 << 20}
		s.Devices = append(s.Devices, report.Device{Index: (local + 1) % 8, TotalBytes: 80 * gib, Driver: context})
	}
	if r.leak > 0 {
		s.Trend = &report.Trend{Level: report.LevelFramework, Kind: report.GrowthSteady, Bytes: 100 * r.leak,
			BytesPerIteration: r.leak, Owners: []report.TrendOwner{{Site: places[3], User: true, Bytes: 100 * r.leak}}}
	}
	for by, keys := range map[string][]string{"site": places, "category": purposes[:len(held)]} {
		g, l := report.Group{By: by, Level: report.LevelFramework, Device: "all"}, report.Ledger{By: by,
			Level: report.LevelFramework, Moment: "peak", WholeBytes: level.PeakBytes, Rows: []report.LedgerRow{}}
		for i, key := range keys[:min(len(keys), len(held))] {
			g.Rows = append(g.Rows, report.Row{Key: key, PeakBytes: held[i], AllocCount: 1, AllocBytes: held[i]})
		}
		s.Groups, s.Ledgers = append(s.Groups, g), append(s.Ledgers, l)
	}
	s.Training = r.training(held)
	return s
}

func (r *madeRank) training(held []uint64) *report.Training {
	own := func(bytes uint64) []report.ModuleBytes {
		b := make([]uint64, len(held))
		b[2] = bytes
		return []report.ModuleBytes{{Moment: "peak", Own: b, Subtree: b}}
	}
	root := &report.Module{Moments: own(0), Children: []report.Module{{Name: "a", Path: "a", Moments: own(held[2] / 2)},
		{Name: "b", Path: "b", Moments: own(held[2] / 2)}}}
	t := &report.Training{Level: report.LevelFramework, Rules: "torch", Categories: purposes[:len(held)], Modules: root,
		IterationsBy: report.IterationsByOptimizer, Iterated: "steps of AdamW", Adapters: map[string]string{}}
	for i := range max(r.iterations, 1) {
		now := r.during(i)
		end := slices.Clone(now)
		end[2] = 0
		t.Iterations = append(t.Iterations, report.Iteration{Number: uint64(i + 1), Ended: true, Highest: now, End: end,
			Peak: report.IterationMoment{TimeNS: 5e9, Phase: "backward", Bytes: report.SumOf(now), Held: now}})
	}
	t.Highest = len(t.Iterations) - 1
	return t
}

func (r *madeRank) write(t *testing.T, folder string) {
	t.Helper()
	r.writeOf(t, folder, r.summary())
}

func (r *madeRank) writeOf(t *testing.T, folder string, s *report.Summary) {
	t.Helper()
	p := runprofile.Profile{Head: *report.HeadOf(s), Body: runprofile.Body{Summary: s, Rules: "torch",
		By: []string{"site", "category"}}}
	var file bytes.Buffer
	if err := p.Write(&file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("rank%04d.%s.mtp", r.rank, r.job)), file.Bytes(),
		0o600); err != nil {
		t.Fatal(err)
	}
}

// The planted faults of manyRanks.
const world, leaks, strays, larger, missing, cut = 1000, 412, 77, 5, 640, 901

// manyRanks makes the profiles of 1,000 ranks: one leaks, one has a context on another's device, one a larger batch,
// one left no trace and one a cut one, and beside them lies a rank of an earlier run.
func manyRanks(t *testing.T, iterations int) (folder, cutPath string) {
	t.Helper()
	folder = t.TempDir()
	for rank := range world {
		r := madeRank{rank: rank, world: world, job: "4711", iterations: iterations}
		switch rank {
		case missing:
			continue
		case leaks:
			r.leak = 1 << 20
		case strays:
			r.stray = true
		case larger:
			r.batch = 1.75
		}
		r.write(t, folder)
	}
	(&madeRank{rank: 3, world: world, job: "4700"}).write(t, folder)
	cutPath = filepath.Join(folder, fmt.Sprintf("rank%04d.4711.mtp", cut))
	if err := os.Truncate(cutPath, 300); err != nil {
		t.Fatal(err)
	}
	return folder, cutPath
}

// TestAThousandRanks: of 1,000 ranks in two stages exactly those with a planted fault are named, each with its reason.
func TestAThousandRanks(t *testing.T) {
	folder, cutPath := manyRanks(t, 0)
	out, errs := execute(t, []string{"report", "--width", "400", folder})
	summary, _, _ := strings.Cut(out, "\n  process ")
	for _, want := range []string{
		"998 processes on 125 hosts, with peaks from 23.0 GiB to ",
		"they form 2 groups, each alike within 0.5%",
		"Rank 5 differs most. Compared with rank ",
		"The model is the same and every activation 1.75 times as large: a larger batch.",
		"The memory of rank 412 grows by 1.00 MiB per iteration (train.py:31 log), unlike that of most others.",
		"Memory on another process's device: rank 77, up to 500.0 MiB on device 6.",
		"Of 1000 ranks, ranks 640, 901 are missing: no trace of theirs was read.",
		"Not of this run, and left out, is " + filepath.Join(folder, "rank0003.4700.mtp") + ".",
	} {
		if !strings.Contains(summary, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if n := strings.Count(summary, "differs"); n != 1 {
		t.Errorf("%d ranks differ", n)
	}
	if !strings.Contains(errs, cutPath+": a profile that is cut: it has 300 of its ") {
		t.Errorf("the cut one is not named: %s", errs)
	}
	if t.Failed() {
		t.Log(out, errs)
	}
}
