package check

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// Noise is how much each gate's figure differs between runs that should do the same.
type Noise struct {
	Schema string      `json:"schema"`
	Runs   int         `json:"runs"`
	Gates  []NoiseGate `json:"gates"`

	// ReservedPercent is by how much the highest reserved peak exceeds the lowest: why no gate compares that.
	ReservedPercent *Figure `json:"reserved_percent,omitempty"`
}

// NoiseSchema names the version of the JSON output with --noise.
const NoiseSchema = "memtrace.noise/1"

// NoiseGate is one gate.
type NoiseGate struct {
	Gate    string `json:"gate"`
	Kind    string `json:"kind"`
	Unit    string `json:"unit"`
	Limit   Figure `json:"limit"` // of KindCompare the tolerance
	Lowest  Figure `json:"lowest"`
	Highest Figure `json:"highest"`
	Spread  Figure `json:"spread"` // the difference of these; of KindCompare in percent of the lowest
	Tight   bool   `json:"too_tight"`
	Least   Figure `json:"least"` // the least limit that holds
	Text    string `json:"text"`
}

// Learn measures gates in several runs.
func Learn(gates []Gate, traces []*Trace, incomplete bool) (*Noise, error) {
	if len(traces) < 2 {
		return nil, errors.New("name the traces of several runs: noise is the difference between them")
	}
	var problems []error
	first := program(&traces[0].Summary.Process)
	for _, t := range traces {
		t.readOwners(gates)
		if why := t.Incomplete(); why != "" && !incomplete {
			problems = append(problems, fmt.Errorf("%s: the trace is not complete: %s; --allow-incomplete accepts it",
				t.Path, why))
		}
		if name := program(&t.Summary.Process); name != first {
			problems = append(problems, fmt.Errorf("%s is of another program, %s; %s is of %s", t.Path, name,
				traces[0].Path, first))
		}
	}
	n := &Noise{Schema: NoiseSchema, Runs: len(traces), Gates: []NoiseGate{}, ReservedPercent: reservedSpread(traces)}
	for _, g := range gates {
		if g.Kind == KindAssert || g.Subject.Kind == "rank-spread" {
			continue
		}
		found, err := learnGate(g, traces)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		n.Gates = append(n.Gates, found)
	}
	if len(n.Gates) == 0 && problems == nil {
		problems = append(problems, errors.New("no gate has a limit to compare with the runs; give one with --max or --baseline"))
	}
	return n, errors.Join(problems...)
}

// learnGate compares the runs of each rank among themselves.
func learnGate(g Gate, traces []*Trace) (n NoiseGate, err error) {
	n = NoiseGate{Gate: g.name(), Kind: g.Kind, Limit: Figure{g.Limit}}
	ranks := map[int][]float64{}
	for _, t := range traces {
		value, err := t.value(g.Subject, cmp.Or(g.Limit.Unit, Bytes))
		if err != nil {
			return n, fmt.Errorf("%s: %s: %w", t.Path, g.Text, err)
		}
		rank := -1
		if r := t.Summary.Process.Rank; r != nil {
			rank = *r
		}
		n.Unit = value.Unit
		ranks[rank] = append(ranks[rank], value.Value)
	}
	widest := -1.0
	for _, values := range ranks {
		low, high := slices.Min(values), slices.Max(values)
		// of several ranks, the one that differs most; of a limit, the one that comes closest to it
		if key := map[bool]float64{true: high, false: spreadPercent(low, high)}[g.Kind == KindMax]; key > widest {
			widest = key
			n.Lowest, n.Highest = Figure{Amount{low, n.Unit}}, Figure{Amount{high, n.Unit}}
		}
	}
	low, high := n.Lowest.Value, n.Highest.Value
	if g.Kind == KindMax {
		n.Spread, n.Least = Figure{Amount{high - low, n.Unit}}, Figure{Amount{high + (high - low), n.Unit}}
		n.Tight = g.Limit.Value < high+(high-low)
	} else {
		spread := spreadPercent(low, high)
		n.Spread, n.Least = Figure{Amount{spread, Percent}}, Figure{Amount{math.Ceil(spread*10) / 10, Percent}}
		n.Tight = spread > g.Limit.Value
	}
	if n.Tight {
		n.Text = fmt.Sprintf("%s is too tight to hold: runs that do the same differ by %s; at least %s is needed", n.Gate,
			n.Spread, n.Least.roundedUp())
	}
	return n, nil
}

func spreadPercent(low, high float64) float64 {
	switch {
	case high == low:
		return 0
	case low == 0:
		return 100
	}
	return 100 * (high - low) / low
}

// reservedSpread is that of what the framework's allocator held, nil without one.
func reservedSpread(traces []*Trace) *Figure {
	var values []float64
	for _, t := range traces {
		sum := uint64(0)
		for i := range t.Summary.Devices {
			sum += t.Summary.Devices[i].ReservedBytesPeak
		}
		values = append(values, float64(sum))
	}
	if slices.Min(values) == 0 {
		return nil
	}
	return &Figure{Amount{spreadPercent(slices.Min(values), slices.Max(values)), Percent}}
}

// TooTight are the gates that will not hold.
func (n *Noise) TooTight() (count uint64) {
	for i := range n.Gates {
		if n.Gates[i].Tight {
			count++
		}
	}
	return count
}

// NoiseText prints the noise as a table.
func NoiseText(w io.Writer, n *Noise, style layout.Options) error {
	p := layout.NewPage(w, style)
	p.Title("memtrace check --noise")
	p.Gap()
	headline := "Every gate is wider than the noise."
	if tight := n.TooTight(); tight > 0 {
		headline = fmt.Sprintf("%s too tight to hold.", layout.Plural(tight, "gate is", "gates are"))
	}
	p.Line("  %s", p.Paint(layout.Strong, headline))
	p.Gap()
	p.Field("runs", layout.Count(uint64(n.Runs)))
	if n.ReservedPercent != nil {
		p.Field("reserved", fmt.Sprintf("differs by %s; no gate compares it", n.ReservedPercent))
	}
	p.Gap()
	var rows [][]layout.Cell
	for i := range n.Gates {
		g := &n.Gates[i]
		limit, word, s := g.Limit.String(), "ok", layout.Relief
		if g.Tight {
			word, s = "TOO TIGHT", layout.Alarm
		}
		rows = append(rows, []layout.Cell{{Text: sanitize.Text(g.Gate)}, {Text: limit}, {Text: g.Lowest.String()},
			{Text: g.Highest.String()}, {Text: g.Spread.String()}, {Text: word, Style: s}})
	}
	p.Table([]layout.Column{{Title: "gate"}, {Title: "limit", Right: true}, {Title: "lowest", Right: true, Optional: 1},
		{Title: "highest", Right: true}, {Title: "noise", Right: true}, {}}, rows)
	p.Gap()
	for i := range n.Gates {
		if n.Gates[i].Tight {
			p.Item(sanitize.Text(n.Gates[i].Text))
		}
	}
	if p.Err() != nil {
		return fmt.Errorf("write the noise: %w", p.Err())
	}
	return nil
}
