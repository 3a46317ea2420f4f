package check

import (
	"fmt"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
)

// Plan is what traces are held against.
type Plan struct {
	Gates    []Gate
	Baseline *Baseline // nil: none
	// Incomplete accepts traces that may not have all of the program's memory.
	Incomplete bool
}

// split divides the gates into those on all ranks together and those on each trace.
func (p *Plan) split() (overall, perTrace []Gate) {
	for _, g := range p.Gates {
		if g.Subject.Kind == "rank-spread" {
			overall = append(overall, g)
		} else {
			perTrace = append(perTrace, g)
		}
	}
	return overall, perTrace
}

// Check holds every gate against every trace.
func (p *Plan) Check(traces []*Trace) *Outcome {
	overall, perTrace := p.split()
	var results []Result
	complete := true
	for _, t := range traces {
		if why := t.Incomplete(); why != "" && !p.Incomplete {
			results = append(results, t.result(Gate{}, Broken,
				fmt.Sprintf("the trace is not complete, so no gate can pass: %s; --allow-incomplete checks what is there",
					why)))
			complete = false
			continue
		}
		base, err := p.base(t, len(traces)-1)
		if err != nil {
			results = append(results, t.result(Gate{}, Broken, err.Error()))
			continue
		}
		for _, g := range perTrace {
			results = append(results, t.hold(g, base))
		}
	}
	for _, g := range overall {
		if complete {
			results = append(results, rankSpread(g, traces))
		}
	}
	return newOutcome(results)
}

func (t *Trace) result(g Gate, status, text string) Result {
	return Result{Trace: t.Path, Rank: t.Summary.Process.Rank, Kind: g.Kind, Gate: g.name(), Status: status, Text: text}
}

// base is what a trace is compared with; nil without a baseline. others counts the other traces.
func (p *Plan) base(t *Trace, others int) (*base, error) {
	if p.Baseline == nil {
		return nil, nil
	}
	return p.Baseline.of(t, others)
}

// hold holds a gate against a trace, and compares it with a baseline if there is one.
func (t *Trace) hold(g Gate, base *base) Result {
	if g.Kind == KindAssert {
		return t.assert(g)
	}
	value, err := t.value(g.Subject, g.Limit.Unit)
	if err != nil {
		return t.result(g, Broken, err.Error())
	}
	limit, r := g.Limit, t.result(g, Passed, "")
	if base != nil {
		before, err := base.value(g)
		if g.Kind == KindCompare && err != nil {
			return t.result(g, Broken, "in the baseline: "+err.Error())
		}
		if err == nil {
			r.Base = &Figure{before}
		}
		if g.Kind == KindCompare {
			limit = allowed(before, g.Limit)
		}
	}
	r.Unit, r.Limit, r.Value = value.Unit, &Figure{limit}, &Figure{value.Amount}
	if value.Value > limit.Value {
		r.Status = Failed
		t.explain(&r, g, base.summary(), value)
	}
	return r
}

// baseValue is a gate's figure in a summary, of an owner that at the peak of all. An owner that is not in there had
// nothing.
func baseValue(base *report.Summary, g Gate) (Amount, error) {
	if g.Subject.Kind == "growth" {
		return Amount{}, fmt.Errorf("growth is not compared")
	}
	value, err := measure(base, nil, g.Subject, g.Limit.Unit)
	if err != nil && g.Subject.Name != "" && hasGroup(base, g.Subject.Kind) {
		return Amount{0, Bytes}, nil
	}
	return value, err
}

// hasGroup reports whether a baseline divides its memory so.
func hasGroup(base *report.Summary, by string) bool {
	return base.Group(by, base.MainLevel()) != nil || by == "library"
}

// allowed is the most that a figure may be: its baseline and the tolerance, a part of that or bytes.
func allowed(base, tolerance Amount) Amount {
	if tolerance.Unit == Percent {
		return Amount{base.Value * (1 + tolerance.Value/100), base.Unit}
	}
	return Amount{base.Value + tolerance.Value, base.Unit}
}

// Compare holds gates of KindCompare against the difference of two summaries, for memtrace diff. As in the difference,
// owners are compared at the peak of all.
func Compare(gates []Gate, path string, base, changed *report.Summary) *Outcome {
	t := NewTrace(path, changed, nil)
	var results []Result
	for _, g := range gates {
		value, err := measure(changed, t.Findings, g.Subject, Bytes)
		before, baseErr := baseValue(base, g)
		switch {
		case err != nil:
			results = append(results, t.result(g, Broken, err.Error()))
			continue
		case baseErr != nil:
			results = append(results, t.result(g, Broken, "in the first trace: "+baseErr.Error()))
			continue
		}
		limit := allowed(before, g.Limit)
		r := t.result(g, Passed, "")
		r.Unit, r.Limit, r.Value, r.Base = Bytes, &Figure{limit}, &Figure{value}, &Figure{before}
		if value.Value > limit.Value {
			r.Status = Failed
			t.explain(&r, g, base, figure{Amount: value, when: "at the peak"})
		}
		results = append(results, r)
	}
	return newOutcome(results)
}

// rankSpread compares the peaks of the ranks of one run.
func rankSpread(g Gate, traces []*Trace) Result {
	r := Result{Kind: g.Kind, Gate: g.Text, Status: Passed, Unit: Percent, Limit: &Figure{g.Limit}}
	if len(traces) < 2 {
		r.Status, r.Text = Broken, "needs the traces of several ranks, such as their folder"
		return r
	}
	for _, t := range traces {
		if err := hasLevel(t.Summary, t.Findings); err != nil {
			r.Status, r.Text, r.Trace = Broken, err.Error(), t.Path
			return r
		}
	}
	peak := func(t *Trace) uint64 { return t.Summary.Main().PeakBytes }
	compare := func(a, b *Trace) int {
		switch {
		case peak(a) < peak(b):
			return -1
		case peak(a) > peak(b):
			return 1
		}
		return 0
	}
	low, high := slices.MinFunc(traces, compare), slices.MaxFunc(traces, compare)
	if peak(low) == 0 {
		r.Status, r.Text, r.Trace = Broken, "a process without memory has no peak to compare", low.Path
		return r
	}
	spread := 100 * float64(peak(high)-peak(low)) / float64(peak(low))
	r.Value = &Figure{Amount{spread, Percent}}
	if spread > g.Limit.Value {
		r.Status = Failed
		high.explainDifference(&r, low.Summary)
		r.Text = fmt.Sprintf("%s has most, %s least. Compared with that: %s", high.Path, low.Path, r.Text)
	}
	return r
}

// CategoryGrouping is the grouping by rules that a checked summary must have.
const CategoryGrouping = "category"

// Groupings are what a summary must be divided by to be checked.
func Groupings() []string { return append(diff.Groupings(), CategoryGrouping) }
