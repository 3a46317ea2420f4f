package diff

import (
	"math"
	"slices"

	"memtrace/analyzer/report"
)

// Scale reports that a process does the same as another with more or less input.
type Scale struct {
	Ratio float64 // of its activations to the other's
	Even  bool    // each module's activations have Ratio: a larger batch, not, say, a longer sequence
}

const (
	scaleTolerance = 0.03 // of ratios that count as equal
	scaleLeast     = 0.05 // by how much activations must differ
	evenShare      = 0.8  // of the bytes that have the common ratio
)

// lasting are the categories that two processes with the same model have the same of.
var lasting = []string{"Parameters", "Optimizer state"}

// scaleOf compares the activations of two processes that train the same model; nil if they do not, or if theirs are
// equal.
func scaleOf(base, changed *report.Summary) *Scale {
	b, c := base.Training, changed.Training
	if b == nil || c == nil {
		return nil
	}
	for _, category := range lasting {
		if x, y := highest(b, category), highest(c, category); x == 0 && y > 0 || x > 0 && !near(y/x, 1) {
			return nil
		}
	}
	before, now := highest(b, "Feature maps"), highest(c, "Feature maps")
	if before == 0 || now == 0 || highest(b, "Parameters") == 0 || math.Abs(now/before-1) < scaleLeast {
		return nil
	}
	s := &Scale{Ratio: now / before}
	if b.Modules != nil && c.Modules != nil {
		x, y := make(map[string]float64), make(map[string]float64)
		modules(b, b.Modules, x)
		modules(c, c.Modules, y)
		even, whole := 0.0, 0.0
		for path, bytes := range x {
			if whole += bytes; near(y[path]/bytes, s.Ratio) {
				even += bytes
			}
		}
		s.Even = whole > 0 && even >= evenShare*whole
	}
	return s
}

func near(ratio, want float64) bool { return math.Abs(ratio/want-1) <= scaleTolerance }

// highest is the most that a training held of a category.
func highest(t *report.Training, category string) (bytes float64) {
	n := slices.Index(t.Categories, category)
	for i := range t.Iterations {
		if n >= 0 && n < len(t.Iterations[i].Highest) {
			bytes = max(bytes, float64(t.Iterations[i].Highest[n]))
		}
	}
	return bytes
}

// modules adds the most that each module holds of activations itself at one of the moments of the iteration: at the
// peak of one whose optimizer needs most there are none left.
func modules(t *report.Training, m *report.Module, held map[string]float64) {
	n := slices.Index(t.Categories, "Feature maps")
	most := uint64(0)
	for _, v := range m.Moments {
		if n >= 0 && n < len(v.Own) {
			most = max(most, v.Own[n])
		}
	}
	if most > 0 {
		held[m.Path] += float64(most)
	}
	for i := range m.Children {
		modules(t, &m.Children[i], held)
	}
}
