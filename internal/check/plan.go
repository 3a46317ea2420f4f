package check

import (
	"errors"
	"fmt"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
	"memtrace/internal/render/layout"
)

// Plan is what traces are held against.
type Plan struct {
	Gates    []Gate
	Baseline *Baseline // nil: none
	// Incomplete accepts traces that may not have all of the program's memory.
	Incomplete bool
	// AnyRank also compares with a baseline of one process where that has another rank.
	AnyRank bool
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
		base, err := p.base(t)
		if err != nil {
			results = append(results, t.result(Gate{}, Broken, err.Error()))
			continue
		}
		t.readOwners(perTrace)
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

// base is what a trace is compared with; nil without a baseline.
func (p *Plan) base(t *Trace) (*base, error) {
	if p.Baseline == nil {
		return nil, nil
	}
	base, err := p.Baseline.of(t, p.AnyRank)
	if err == nil && base.lacks != "" && !p.Incomplete {
		return nil, errors.New(base.lacks + "; --allow-incomplete compares what is there")
	}
	return base, err
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
			return t.result(g, Broken, "in "+base.what+": "+err.Error())
		}
		if err == nil {
			r.Base = &Figure{before}
		}
		if g.Kind == KindCompare {
			limit = allowed(before, g.Limit)
		}
	}
	r.Unit, r.Limit, r.Value = value.Unit, &Figure{limit}, &Figure{value.Amount}
	unknown := unknownRequest(t.Summary, g.Subject)
	if unknown > 0 {
		r.Note = fmt.Sprintf("%s of it is in blocks of which the request is not known; they count at their size",
			layout.Bytes(unknown))
	}
	switch {
	case value.Value <= limit.Value:
	case g.Kind == KindCompare && base != nil && value.Value-float64(unknown) <= base.most(g).Value:
		r.Status, r.Text = Broken, fmt.Sprintf("cannot be compared: of %s here and %s in %s the request is not known",
			layout.Bytes(unknown), layout.Bytes(unknownRequest(base.Summary, g.Subject)), base.what)
	default:
		r.Status = Failed
		t.explain(&r, g, base.summary(), value)
		if r.Note != "" {
			r.Text += " " + r.Note + "."
		}
	}
	return r
}

// baseValue is a gate's figure in a summary, of an owner that at the peak of all. An owner that is not in there had
// nothing. Of what was requested it is the least that it may have been.
func baseValue(base *report.Summary, g Gate) (Amount, error) {
	if g.Subject.Kind == "growth" {
		return Amount{}, fmt.Errorf("growth is not compared")
	}
	value, err := measure(base, nil, g.Subject, g.Limit.Unit)
	if err != nil && g.Subject.Name != "" && hasGroup(base, g.Subject.Kind) {
		return Amount{0, Bytes}, nil
	}
	value.Value -= float64(unknownRequest(base, g.Subject))
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
// owners are compared at the peak of all. As for Check, traces must be complete.
func Compare(gates []Gate, basePath, path string, first, changed *report.Summary) *Outcome {
	t := NewTrace(path, changed, nil)
	t.when = "at the peak"
	var results []Result
	for _, one := range []*Trace{NewTrace(basePath, first, nil), t} {
		if why := one.Incomplete(); why != "" {
			results = append(results, one.result(Gate{}, Broken, fmt.Sprintf(
				"the trace is not complete, so no gate can pass: %s; memtrace check --baseline FILE "+
					"--allow-incomplete compares what is there", why)))
		}
	}
	if len(results) > 0 {
		return newOutcome(results)
	}
	for _, g := range gates {
		results = append(results, t.hold(g, &base{Summary: first, what: "the first trace", atMoment: true}))
	}
	return newOutcome(results)
}

// CategoryGrouping is the grouping by rules that a checked summary must have.
const CategoryGrouping = "category"

// Groupings are what a summary must be divided by to be checked.
func Groupings() []string { return append(diff.Groupings(), CategoryGrouping) }
