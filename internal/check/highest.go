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
	if v.when = t.when; v.when != "" {
		return v, nil
	}
	if _, known := t.highest[sub]; !known {
		if err := t.readHighest([]Subject{sub}); err != nil {
			return v, err
		}
	}
	return t.highest[sub], nil
}

// ownersAtOnce bounds the owners that one reading is for: each takes the memory of a replay.
const ownersAtOnce = 16

// readOwners reads the trace once more for all owners that gates name, so that value need not for each. What cannot be
// measured is left to value, which says why.
func (t *Trace) readOwners(gates []Gate) {
	if t.again == nil || t.when != "" {
		return
	}
	var owners []Subject
	for _, g := range gates {
		_, known := t.highest[g.Subject]
		if g.Subject.Name == "" || known || slices.Contains(owners, g.Subject) {
			continue
		}
		if _, err := measure(t.Summary, t.Findings, g.Subject, Bytes); err == nil {
			owners = append(owners, g.Subject)
		}
	}
	for list := range slices.Chunk(owners, ownersAtOnce) {
		if t.readHighest(list) != nil {
			return
		}
	}
}

// readHighest reads the trace again, and counts for each owner nothing but its blocks. Categories that depend on how
// long a block lives are taken from the iterations, which count each when that is known.
func (t *Trace) readHighest(owners []Subject) error {
	if t.again == nil {
		return errNoHighest
	}
	asks := make([]func(o *analyzer.Options), len(owners))
	for i, sub := range owners {
		named := t.named(sub)
		asks[i] = func(o *analyzer.Options) {
			o.OwnerBy, o.OwnerIs = named.Kind, named.matcher()
			o.Groupings, o.Sites = explainedBy, false // call stacks are known already, and cost most
		}
	}
	list, err := t.again(asks...)
	if err != nil {
		return err
	}
	if t.highest == nil {
		t.highest = map[Subject]figure{}
	}
	for i, sub := range owners {
		t.highest[sub] = t.highestIn(list[i], sub)
	}
	return nil
}

// highestIn is the figure of an owner in the summary of its blocks alone.
func (t *Trace) highestIn(own *report.Summary, sub Subject) figure {
	named, level := t.named(sub), own.Framework
	if named.Kind == "library" || t.Summary.MainLevel() == report.LevelDriver {
		level = own.Driver
	}
	bytes := level.PeakBytes
	if counted, known := t.countedHighest(named, named.matcher()); known {
		atPeak, _ := measure(t.Summary, t.Findings, sub, Bytes)
		bytes = max(counted, wholeBytes(atPeak.Value))
	}
	v := figure{Amount: Amount{float64(bytes), Bytes}, when: "at its highest"}
	if bytes == level.PeakBytes {
		v.own = own
	}
	return v
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
	t.readOwners(gates)
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
