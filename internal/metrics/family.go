// Package metrics writes figures as Prometheus and OpenMetrics read them, and serves them over HTTP. It does not depend
// on memtrace's own figures.
//
// # Invariants
//
//  1. What is written can be parsed, whatever the values of labels are: families and series are unique, names are
//     checked, text is escaped.
//  2. The number of series has a bound that does not depend on the programs that are measured: see Chooser and
//     Families.
//  3. A server answers one path, reads nothing but the request's head, and changes nothing.
package metrics

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"memtrace/internal/sanitize"
)

// Type is the type of a family.
type Type uint8

// The types.
const (
	Gauge   Type = iota // may go up and down
	Counter             // goes up only; the names of its samples end in _total
	Info                // labels alone: the value is 1, and the names of its samples end in _info
)

// Label is one name and its value.
type Label struct{ Name, Value string }

// Sample is one value of a family.
type Sample struct {
	Labels []Label
	Value  float64
}

// Family is all samples of one name.
type Family struct {
	Name    string // without _total and _info; ends in the unit if there is one
	Help    string
	Unit    string // "bytes", "seconds", "ratio" or ""
	Type    Type
	Samples []Sample

	seen map[string]int // index of a series by its labels
}

// maxLabelRunes bounds the value of a label. Prometheus itself has no bound, but its servers are commonly set to refuse
// longer ones with all samples beside them.
const maxLabelRunes = 200

// cutMark replaces what was cut out of a value.
const cutMark = "…"

// Clean returns what a label shows of a text that others chose: printable characters only, and not too many of them. Of
// a long text the beginning and the end stay, since paths differ in their ends.
func Clean(text string) string {
	text = sanitize.Text(text)
	runes := []rune(text)
	if len(runes) <= maxLabelRunes {
		return text
	}
	const head = maxLabelRunes / 3
	return string(runes[:head]) + cutMark + string(runes[len(runes)-(maxLabelRunes-head-1):])
}

// Add adds a sample, with cleaned labels; those without a value are left out, which means the same to Prometheus.
// Samples with the same labels become one: their values are added up.
func (f *Family) Add(value float64, labels ...Label) {
	kept := make([]Label, 0, len(labels))
	var key strings.Builder
	for _, l := range labels {
		if l.Value = Clean(l.Value); l.Value != "" {
			kept = append(kept, l)
			fmt.Fprintf(&key, "%s=%q,", l.Name, l.Value)
		}
	}
	if f.seen == nil {
		f.seen = make(map[string]int)
	}
	if at, known := f.seen[key.String()]; known {
		if f.Type != Info {
			f.Samples[at].Value += value
		}
		return
	}
	f.seen[key.String()] = len(f.Samples)
	f.Samples = append(f.Samples, Sample{Labels: kept, Value: value})
}

// sampleName is the name that samples have.
func (f *Family) sampleName() string {
	switch f.Type {
	case Counter:
		return f.Name + "_total"
	case Info:
		return f.Name + "_info"
	}
	return f.Name
}

var (
	metricName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	labelName  = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	reserved   = []string{"_total", "_info", "_created", "_count", "_sum", "_bucket"}
)

// check reports what is against the rules of naming: a mistake of this program, which its tests find.
func (f *Family) check() error {
	if !metricName.MatchString(f.Name) {
		return fmt.Errorf("metric %q: not a name", f.Name)
	}
	for _, suffix := range reserved {
		if strings.HasSuffix(f.Name, suffix) {
			return fmt.Errorf("metric %q: ends in %s", f.Name, suffix)
		}
	}
	if f.Unit != "" && !strings.HasSuffix(f.Name, "_"+f.Unit) {
		return fmt.Errorf("metric %q: does not end in its unit %s", f.Name, f.Unit)
	}
	if f.Help == "" {
		return fmt.Errorf("metric %q: has no help", f.Name)
	}
	for _, s := range f.Samples {
		for i, l := range s.Labels {
			if !labelName.MatchString(l.Name) {
				return fmt.Errorf("metric %q: label %q is not a name", f.Name, l.Name)
			}
			if slices.ContainsFunc(s.Labels[:i], func(other Label) bool { return other.Name == l.Name }) {
				return fmt.Errorf("metric %q: label %q stands there twice", f.Name, l.Name)
			}
		}
		if f.Type == Counter && (s.Value < 0 || math.IsNaN(s.Value)) {
			return fmt.Errorf("metric %q: a counter cannot be %v", f.Name, s.Value)
		}
	}
	return nil
}

// Check reports what is against the rules in a list of families.
func Check(families []*Family) error {
	seen := map[string]bool{}
	for _, f := range families {
		if err := f.check(); err != nil {
			return err
		}
		if seen[f.Name] {
			return fmt.Errorf("metric %q: stands there twice", f.Name)
		}
		seen[f.Name] = true
	}
	return nil
}
