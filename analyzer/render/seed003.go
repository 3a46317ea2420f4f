package render

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"memtrace/analyzer"
)

// The table of the TBD memory profiler for PyTorch, which scripts read: its widths are part of its shape.
const (
	seedStars  = 43
	seedLabel  = 45
	seedNumber = 5
	seedIndent = "  "
)

// Categories that the profiler's figures are made of.
const (
	featureMaps           = "Feature maps"
	intermediateGradients = "Intermediate gradients"
)

// seedIteration is an iteration under the profiler's numbers: both count from 1, iterations anew in every epoch.
type seedIteration struct {
	*analyzer.Iteration
	epoch, number int
}

// seedIterations lists the iterations that ended, or the whole run where nothing tells iterations apart, as far as the options ask for them.
func seedIterations(t *analyzer.Training, o Options) (list []seedIteration) {
	epoch, number := 0, 0
	var announced uint64
	for i := range t.Iterations {
		it := &t.Iterations[i]
		if !it.Ended && t.IterationsBy != analyzer.IterationsByNothing {
			continue
		}
		if epoch == 0 || it.Epoch != announced {
			epoch, number, announced = epoch+1, 0, it.Epoch
		}
		number++
		if (o.Epoch == 0 || o.Epoch == epoch) && number%max(o.Period, 1) == 0 {
			list = append(list, seedIteration{it, epoch, number})
		}
	}
	return list
}

// highestOf is a category's own highest in an iteration; known is false where the rules have no such category.
func highestOf(t *analyzer.Training, it *analyzer.Iteration, category string) (bytes uint64, known bool) {
	i := slices.Index(t.Categories, category)
	if i < 0 {
		return 0, false
	}
	return it.Highest[i], true
}

func weightsOf(t *analyzer.Training) (list []analyzer.Parameter, weights, gradients uint64) {
	for _, parameter := range t.Parameters {
		if parameter.Category == "parameter" {
			list = append(list, parameter)
			weights += parameter.Bytes
			gradients += parameter.Gradient
		}
	}
	return list, weights, gradients
}

// seed003 prints one table per iteration.
func (p *page) seed003(s *analyzer.Summary) {
	t := s.Training
	parameters, weights, gradients := weightsOf(t)
	for i, it := range seedIterations(t, p.o) {
		if i > 0 {
			p.line("")
		}
		stars := strings.Repeat("*", seedStars)
		p.line("%s", stars)
		p.line("Memory Usage for Iteration %d of Epoch %d", it.number, it.epoch)
		p.line("%s", stars)
		p.seedRow("Peak cached", it.ReservedPeakBytes, true)
		p.seedRow("Current cached", it.ReservedEndBytes, true)
		maps, known := highestOf(t, it.Iteration, featureMaps)
		p.seedRow("Total feature map usage", maps, known)
		p.line("")
		p.seedRow("Total layer weight usage", weights, true)
		for _, parameter := range parameters {
			p.seedRow(seedIndent+clean(parameter.Name), parameter.Bytes, true)
		}
		p.line("")
		p.seedRow("Total layer weight gradient usage", gradients, true)
		for _, parameter := range parameters {
			p.seedRow(seedIndent+clean(parameter.Name)+" grad", parameter.Gradient, true)
		}
		between, known := highestOf(t, it.Iteration, intermediateGradients)
		p.seedRow("Intermediate gradients", between, known)
	}
}

// seedRow prints a label and a number with dots between them; what is not known is a question mark.
func (p *page) seedRow(label string, bytes uint64, known bool) {
	unit := p.o.Unit
	if unit == "" {
		unit = UnitMB
	}
	number := "?"
	if known {
		number = unit.whole(bytes)
	}
	dots := max(0, seedLabel-utf8.RuneCountInString(label)) + max(0, seedNumber-len(number))
	p.line("%s%s%s %s", label, strings.Repeat(".", dots), number, unit)
}

// iterationRows is the CSV of iterations, with the columns of the TBD memory profiler in their order.
func iterationRows(s *analyzer.Summary, o Options, write unitWriter) [][]string {
	t := s.Training
	parameters, weights, gradients := weightsOf(t)
	header := []string{"epoch", "iteration", "peak_cached", "current_cached", "total_feature_map_usage", "total_weight_usage"}
	for _, parameter := range parameters {
		header = append(header, parameter.Name)
	}
	header = append(header, "total_layer_weight_gradient_usage")
	for _, parameter := range parameters {
		header = append(header, parameter.Name+"_grad")
	}
	rows := [][]string{append(header, "intermediate_gradients")}
	of := func(it *analyzer.Iteration, category string) string {
		if bytes, known := highestOf(t, it, category); known {
			return write(bytes)
		}
		return ""
	}
	for _, it := range seedIterations(t, o) {
		row := []string{fmt.Sprint(it.epoch), fmt.Sprint(it.number), write(it.ReservedPeakBytes), write(it.ReservedEndBytes), of(it.Iteration, featureMaps), write(weights)}
		for _, parameter := range parameters {
			row = append(row, write(parameter.Bytes))
		}
		row = append(row, write(gradients))
		for _, parameter := range parameters {
			row = append(row, write(parameter.Gradient))
		}
		rows = append(rows, append(row, of(it.Iteration, intermediateGradients)))
	}
	return rows
}
