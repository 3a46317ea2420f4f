package render

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// The table of the TBD memory profiler for PyTorch, which scripts read: its widths are part of its shape.
const (
	tbdStars  = 43
	tbdLabel  = 45
	tbdNumber = 5
	tbdIndent = "  "
)

// Categories of the profiler's figures, which the rules must have.
const (
	FeatureMaps           = "Feature maps"
	IntermediateGradients = "Intermediate gradients"
)

// numberedIteration is an iteration under the profiler's numbers: both count from 1, iterations from 1 in every epoch.
type numberedIteration struct {
	*report.Iteration
	epoch, number int
}

// numberedIterations lists the iterations that ended, or the whole run if iterations are unknown, as selected by the
// options.
func numberedIterations(t *report.Training, o layout.Options) (list []numberedIteration) {
	epoch, number := 0, 0
	var announced uint64
	for i := range t.Iterations {
		it := &t.Iterations[i]
		if !it.Ended && t.IterationsBy != report.IterationsByNothing {
			continue
		}
		if epoch == 0 || it.Epoch != announced {
			epoch, number, announced = epoch+1, 0, it.Epoch
		}
		number++
		if (o.Epoch == 0 || o.Epoch == epoch) && number%max(o.Period, 1) == 0 {
			list = append(list, numberedIteration{it, epoch, number})
		}
	}
	return list
}

// NothingSelected explains why --period and --epoch leave no table, "" if they leave one, or if there are no iterations
// at all, as in an imported trace.
func NothingSelected(s *report.Summary, o layout.Options) string {
	if s.Training == nil {
		return ""
	}
	all := numberedIterations(s.Training, layout.Options{})
	if len(all) == 0 || len(numberedIterations(s.Training, o)) > 0 {
		return ""
	}
	epochs, longest := all[len(all)-1].epoch, 0
	for _, it := range all {
		if o.Epoch == 0 || it.epoch == o.Epoch {
			longest = max(longest, it.number)
		}
	}
	switch {
	case longest == 0:
		return fmt.Sprintf("there is no epoch %d: the trace has %s", o.Epoch,
			layout.Plural(uint64(epochs), "epoch", "epochs"))
	case o.Epoch > 0:
		return fmt.Sprintf("no iteration %d in epoch %d, which has %s", o.Period, o.Epoch,
			layout.Plural(uint64(longest), "iteration", "iterations"))
	}
	return fmt.Sprintf("no iteration %d: the longest epoch has %s", o.Period,
		layout.Plural(uint64(longest), "iteration", "iterations"))
}

// cachedIn is the allocator's memory at most and at the end: by its own figure, or for a framework without one, such as
// MXNet, the memory allocated from the driver.
func cachedIn(s *report.Summary, it *report.Iteration) (peak, current uint64) {
	if !s.Framework.Empty() {
		return it.ReservedPeakBytes, it.ReservedEndBytes
	}
	for _, bytes := range it.End {
		current += bytes
	}
	return it.Peak.Bytes, current
}

// highestOf is a category's own highest in an iteration. A category that never held anything is not among those of the
// run.
func highestOf(t *report.Training, it *report.Iteration, category string) uint64 {
	if i := slices.Index(t.Categories, category); i >= 0 {
		return it.Highest[i]
	}
	return 0
}

// weightsOf lists the parameters under the names that they have within their model, with the sums of their bytes.
func weightsOf(t *report.Training) (list []report.Parameter, weights, gradients uint64) {
	for _, parameter := range t.Parameters {
		if parameter.Category == "parameter" {
			list = append(list, parameter)
			weights += parameter.Bytes
			gradients += parameter.Gradient
		}
	}
	model := modelOf(list)
	for i := range list {
		list[i].Name = strings.TrimPrefix(list[i].Name, model)
	}
	return list, weights, gradients
}

// modelOf is the common prefix of all names, the name of the only model and a dot; "" if there are several.
func modelOf(list []report.Parameter) string {
	if len(list) == 0 {
		return ""
	}
	name, _, nested := strings.Cut(list[0].Name, ".")
	other := func(p report.Parameter) bool { return !strings.HasPrefix(p.Name, name+".") }
	if !nested || slices.ContainsFunc(list, other) {
		return ""
	}
	return name + "."
}

// writeTBD prints one table per iteration.
func writeTBD(p *layout.Page, s *report.Summary) {
	t := s.Training
	parameters, weights, gradients := weightsOf(t)
	for i, it := range numberedIterations(t, p.Options) {
		if i > 0 {
			p.Line("")
		}
		stars := strings.Repeat("*", tbdStars)
		p.Line("%s", stars)
		p.Line("Memory Usage for Iteration %d of Epoch %d", it.number, it.epoch)
		p.Line("%s", stars)
		peak, current := cachedIn(s, it.Iteration)
		writeTBDRow(p, "Peak cached", peak)
		writeTBDRow(p, "Current cached", current)
		writeTBDRow(p, "Total feature map usage", highestOf(t, it.Iteration, FeatureMaps))
		p.Line("")
		writeTBDRow(p, "Total layer weight usage", weights)
		for _, parameter := range parameters {
			writeTBDRow(p, tbdIndent+sanitize.Text(parameter.Name), parameter.Bytes)
		}
		p.Line("")
		writeTBDRow(p, "Total layer weight gradient usage", gradients)
		for _, parameter := range parameters {
			writeTBDRow(p, tbdIndent+sanitize.Text(parameter.Name)+" grad", parameter.Gradient)
		}
		writeTBDRow(p, "Intermediate gradients", highestOf(t, it.Iteration, IntermediateGradients))
	}
}

// writeTBDRow prints a label and a number with dots between them.
func writeTBDRow(p *layout.Page, label string, bytes uint64) {
	unit := p.Unit
	if unit == "" {
		unit = layout.UnitMB
	}
	number := unit.Whole(bytes)
	dots := max(0, tbdLabel-layout.Width(label)) + max(0, tbdNumber-len(number))
	p.Line("%s%s%s %s", label, strings.Repeat(".", dots), number, unit)
}

// iterationRows is the CSV of iterations, with the columns of the TBD memory profiler in their order.
func iterationRows(s *report.Summary, o layout.Options, write layout.UnitWriter) iter.Seq[[]string] {
	t := s.Training
	parameters, weights, gradients := weightsOf(t)
	header := []string{"epoch", "iteration", "peak_cached", "current_cached", "total_feature_map_usage",
		"total_weight_usage"}
	row := make([]string, len(header), len(header)+2*len(parameters)+2)
	row = append(row[:len(header)-1], write(weights))
	for _, parameter := range parameters {
		header, row = append(header, parameter.Name), append(row, write(parameter.Bytes))
	}
	header, row = append(header, "total_layer_weight_gradient_usage"), append(row, write(gradients))
	for _, parameter := range parameters {
		header, row = append(header, parameter.Name+"_grad"), append(row, write(parameter.Gradient))
	}
	header, row = append(header, "intermediate_gradients"), append(row, "")
	return func(yield func([]string) bool) {
		if !yield(header) {
			return
		}
		for _, it := range numberedIterations(t, o) {
			peak, current := cachedIn(s, it.Iteration)
			copy(row, []string{strconv.Itoa(it.epoch), strconv.Itoa(it.number), write(peak), write(current),
				write(highestOf(t, it.Iteration, FeatureMaps))})
			row[len(row)-1] = write(highestOf(t, it.Iteration, IntermediateGradients))
			if !yield(row) {
				return
			}
		}
	}
}
