package check

import (
	"errors"
	"fmt"
	"slices"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
)

// A gate on an owner is about the most that the owner ever held, whatever the total was then: a limit on the optimizer
// must also see a peak of its state that is not the program's. With --at it is about what the owner held at that
// moment; --at peak is that of the total.

// errNoHighest is what a JSON report and a profile answer: they have owners at the peak of all.
var errNoHighest = errors.New("needs the trace: neither a JSON report nor a profile has an owner's own highest; with a JSON report made with --at peak, --at peak is about what it held at the peak of all")

// figure is what a gate compares.
type figure struct {
	Amount
	when string          // of an owner: "at its highest"
	own  *report.Summary // of an owner's blocks alone, at that moment; nil: not known
}

// value measures a subject.
func (t *Trace) value(sub Subject, unit string) (v figure, err error) {
	if v.Amount, err = measure(t.Summary, t.Findings, sub, unit); err != nil || sub.Name == "" {
		return v, err
	}
	if at := t.Summary.At; at != nil {
		v.when = "at " + at.What
		return v, nil
	}
	if v, known := t.highest[sub]; known {
		return v, nil
	}
	if v, err = t.measureHighest(sub, wholeBytes(v.Value)); err == nil {
		if t.highest == nil {
			t.highest = map[Subject]figure{}
		}
		t.highest[sub] = v
	}
	return v, err
}

// measureHighest reads the trace again, with nothing but the owner's blocks. Categories that depend on how long a block
// lives are taken from the iterations, which count each when that is known.
func (t *Trace) measureHighest(sub Subject, atPeak uint64) (v figure, err error) {
	if t.again == nil {
		return v, errNoHighest
	}
	named := t.named(sub)
	matches := named.matcher()
	own, err := t.again(func(o *analyzer.Options) { o.OwnerBy, o.OwnerIs = named.Kind, matches })
	if err != nil {
		return v, err
	}
	level := own.Framework
	if named.Kind == "library" || t.Summary.MainLevel() == report.LevelDriver {
		level = own.Driver
	}
	bytes := level.PeakBytes
	if counted, known := t.countedHighest(named, matches); known {
		bytes = max(counted, atPeak)
	}
	v = figure{Amount: Amount{float64(bytes), Bytes}, when: "at its highest"}
	if bytes == level.PeakBytes {
		v.own = own
	}
	return v, nil
}

// named completes the name of a category.
func (t *Trace) named(sub Subject) Subject {
	if group := t.Summary.Group(sub.Kind, t.Summary.MainLevel()); group != nil && sub.Kind == "category" {
		if name, err := categoryName(t.Summary, group, sub.Name); err == nil {
			sub.Name = name
		}
	}
	return sub
}

// countedHighest is the most that the iterations count of a category; of several together they count nothing.
func (t *Trace) countedHighest(sub Subject, matches func(key string) bool) (most uint64, known bool) {
	training := t.Summary.Training
	if sub.Kind != "category" || training == nil || training.Level != t.Summary.MainLevel() {
		return 0, false
	}
	at := slices.IndexFunc(training.Categories, matches)
	if at < 0 || slices.ContainsFunc(training.Categories[at+1:], matches) {
		return 0, false
	}
	for i := range training.Iterations {
		if highest := training.Iterations[i].Highest; at < len(highest) {
			most, known = max(most, highest[at]), true
		}
	}
	return most, known
}

// absentError is that on an owner which no row has.
type absentError struct{ text string }

func (e *absentError) Error() string { return e.text }

// highestOf are the figures of the owners that gates name, by gate; nil where the summary is about one moment. What a
// comparison names may be absent.
func (t *Trace) highestOf(gates []Gate) (map[string]uint64, error) {
	if t.Summary.At != nil {
		return nil, nil
	}
	owners := map[string]uint64{}
	for _, g := range gates {
		if g.Subject.Name == "" {
			continue
		}
		v, err := t.value(g.Subject, Bytes)
		var absent *absentError
		if err != nil && !(g.Kind == KindCompare && errors.As(err, &absent)) {
			return nil, fmt.Errorf("%s: %s: %w", t.Path, g.Text, err)
		}
		owners[g.Subject.String()] = wholeBytes(v.Value)
	}
	return owners, nil
}
