package check

import (
	"errors"
	"fmt"

	"memtrace/internal/render/layout"
)

// Schema names the version of the JSON output.
const Schema = "memtrace.check/1"

// What became of a gate.
const (
	Passed = "passed"
	Failed = "failed"
	Broken = "error" // it could not be checked, which is no pass
)

// Outcome is what check found.
type Outcome struct {
	Schema  string   `json:"schema"`
	Status  string   `json:"status"` // Passed, Failed or Broken: the worst of all results
	Budget  string   `json:"budget,omitempty"`
	Run     string   `json:"run,omitempty"`
	Results []Result `json:"results"`
}

// Result is one gate, held against one trace.
type Result struct {
	Trace  string `json:"trace"` // "" of gates on all ranks together
	Rank   *int   `json:"rank,omitempty"`
	Kind   string `json:"kind"` // KindMax, KindCompare or KindAssert
	Gate   string `json:"gate"` // as it is written
	Status string `json:"status"`

	Unit  string  `json:"unit,omitempty"`
	Limit *Figure `json:"limit,omitempty"` // at most; of released-after at least
	Value *Figure `json:"value,omitempty"`
	Base  *Figure `json:"base,omitempty"` // in the baseline

	Note   string `json:"note,omitempty"`   // what limits the figure; a failure's text has it, too
	Text   string `json:"text"`             // of a failure who grew, of an error why; "" of a pass
	Owner  *Owner `json:"owner,omitempty"`  // that grew most, or holds most
	Module string `json:"module,omitempty"` // that grew most, or holds most
	Site   string `json:"site,omitempty"`   // the place in the program
	File   string `json:"file,omitempty"`   // the same as a path, as it was recorded
	Line   int    `json:"line,omitempty"`

	least bool // the limit is one from below
}

// Figure is an amount whose unit is beside it.
type Figure struct{ Amount }

// MarshalJSON writes the number.
func (f Figure) MarshalJSON() ([]byte, error) { return []byte(f.number()), nil }

// Owner is a row of a grouping.
type Owner struct {
	By        string  `json:"by"`
	Name      string  `json:"name"`
	Bytes     uint64  `json:"bytes"`
	BaseBytes *uint64 `json:"base_bytes,omitempty"` // in the baseline; absent without one

	inAll bool // the figures are of all that the owner has, and not of what the gate is about alone
}

// newOutcome sums results up.
func newOutcome(results []Result) *Outcome {
	o := &Outcome{Schema: Schema, Status: Passed, Results: append([]Result{}, results...)}
	for i := range results {
		switch {
		case results[i].Status == Broken:
			o.Status = Broken
		case results[i].Status == Failed && o.Status == Passed:
			o.Status = Failed
		}
	}
	return o
}

// Problems are the results that could not be had, as errors.
func (o *Outcome) Problems() (list []error) {
	for i := range o.Results {
		if r := &o.Results[i]; r.Status == Broken {
			list = append(list, errors.New(r.sentence()))
		}
	}
	return list
}

// sentence is a result with its trace and gate.
func (r *Result) sentence() string {
	text := r.Text
	if r.Gate != "" {
		text = r.Gate + ": " + text
	}
	if r.Trace != "" {
		text = r.Trace + ": " + text
	}
	return text
}

// remark is what is said of a gate that was held: who grew, or what limits the figure; "" if nothing is.
func (r *Result) remark() string {
	if r.Status == Passed && r.Note != "" {
		return r.Note + "."
	}
	return r.Text
}

func (o *Outcome) count(status string) (n uint64) {
	for i := range o.Results {
		if o.Results[i].Status == status {
			n++
		}
	}
	return n
}

// Headline is what check found, in a sentence.
func (o *Outcome) Headline() string {
	all := uint64(len(o.Results))
	failed, broken := o.count(Failed), o.count(Broken)
	switch {
	case failed == 0 && broken == 0 && all == 1:
		return "The gate passed."
	case failed == 0 && broken == 0:
		return fmt.Sprintf("All %s passed.", layout.Plural(all, "gate", "gates"))
	case broken == 0 && all == 1:
		return "The gate failed."
	case broken == 0:
		return fmt.Sprintf("%d of %s failed.", failed, layout.Plural(all, "gate", "gates"))
	case failed == 0 && all == 1:
		return "The gate could not be checked."
	case failed == 0:
		return fmt.Sprintf("%d of %s could not be checked.", broken, layout.Plural(all, "gate", "gates"))
	}
	return fmt.Sprintf("%d of %s failed, and %d could not be checked.", failed, layout.Plural(all, "gate", "gates"),
		broken)
}

// statusWords are the last column of a table: the difference to the limit repeats what the colour says.
func (r *Result) statusWords() string {
	switch {
	case r.Status == Passed:
		return "ok"
	case r.Status == Broken:
		return "NOT CHECKED"
	case r.Limit == nil || r.Value == nil:
		return "FAILED"
	case r.least:
		return "BELOW"
	}
	over := Amount{r.Value.Value - r.Limit.Value, r.Value.Unit}
	return "OVER by " + over.String()
}

func (r *Result) limitText() string {
	switch {
	case r.Limit == nil:
		return ""
	case r.least:
		return "≥ " + r.Limit.String()
	}
	return r.Limit.String()
}

func figureText(f *Figure) string {
	if f == nil {
		return ""
	}
	return f.String()
}
