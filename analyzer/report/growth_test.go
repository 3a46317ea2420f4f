package report

import "testing"

// leaving makes iterations that end with these bytes, of two categories: the second is what exceeds base.
func leaving(base uint64, ends ...uint64) *Training {
	t := &Training{Categories: []string{"Parameters", "Others"}}
	for i, end := range ends {
		t.Iterations = append(t.Iterations, Iteration{Number: uint64(i + 1), Ended: true,
			End: []uint64{base, end - base}})
	}
	return t
}

func TestGrowth(t *testing.T) {
	cases := []struct {
		name string
		of   *Training
		want Growth
	}{
		{"nothing", &Training{}, Growth{Kind: GrowthUnknown}},
		{"four are too few: the first does not count", leaving(100, 100, 110, 120, 130), Growth{Kind: GrowthUnknown}},
		{"steady from the second on", leaving(100, 100, 150, 150, 150, 150), Growth{Kind: GrowthNone}},
		{"a leak", leaving(100, 100, 110, 120, 130, 140), Growth{Kind: GrowthSteady, From: 1, To: 4, Bytes: 30,
			ByCategory: []int64{0, 30}}},
		{"a leak under batches of different sizes", leaving(100, 100, 190, 102, 170, 104, 180, 106, 150, 108),
			Growth{Kind: GrowthSteady, From: 2, To: 8, Bytes: 6, ByCategory: []int64{0, 6}}},
		{"batches alone", leaving(100, 100, 190, 102, 170, 102, 180, 102, 150, 102), Growth{Kind: GrowthNone}},
		{"something loaded half-way", leaving(100, 100, 100, 100, 100, 300, 300, 300, 300), Growth{Kind: GrowthNone}},
		{"shrinking", leaving(10, 100, 90, 80, 70, 60), Growth{Kind: GrowthNone}},
	}
	for _, c := range cases {
		got := c.of.Growth()
		if got.Kind != c.want.Kind || got.From != c.want.From || got.To != c.want.To || got.Bytes != c.want.Bytes ||
			len(got.ByCategory) != len(c.want.ByCategory) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
			continue
		}
		for i := range got.ByCategory {
			if got.ByCategory[i] != c.want.ByCategory[i] {
				t.Errorf("%s: category %d: got %d, want %d", c.name, i, got.ByCategory[i], c.want.ByCategory[i])
			}
		}
	}
	unfinished := leaving(100, 100, 110, 120, 130, 140)
	unfinished.Iterations[4].Ended = false // what came after the last end is no iteration
	if got := unfinished.Growth(); got.Kind != GrowthUnknown {
		t.Errorf("with an unfinished iteration: %+v", got)
	}
	if got := leaving(100, 100, 110, 120, 130, 140).Growth().PerIteration(); got != 10 {
		t.Errorf("per iteration: %d, want 10", got)
	}
}

// TestVerdictGrowsByIteration: the verdict's figure says what its sentence says, also where the run was too short for a
// trend over time.
func TestVerdictGrowsByIteration(t *testing.T) {
	s := &Summary{Framework: Level{AllocCount: 1, PeakBytes: 1}, Trend: &Trend{Kind: GrowthNone},
		Training: leaving(100, 100, 110, 120, 130, 140)}
	s.Training.IterationsBy, s.Training.Highest = IterationsByStep, -1
	if got := s.Verdict().Growth; got != GrowthSteady {
		t.Errorf("growth %q", got)
	}
	s.Training.IterationsBy = IterationsByPeriod // guessed iterations prove nothing
	if got := s.Verdict().Growth; got != GrowthNone {
		t.Errorf("growth %q by guessed iterations", got)
	}
}
