package render

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/fold"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// parameterSum is a row in the making: one parameter, or several.
type parameterSum struct {
	name, each              string
	weight, gradient, state uint64
	blocks                  uint64 // of all three
	count                   uint64 // of parameters
	requested               *report.Requested
}

func (s *parameterSum) add(p *report.Parameter) {
	state, stateBlocks := p.StateBytes()
	s.weight += p.Bytes
	s.gradient += p.Gradient
	s.state += state
	s.blocks += p.BlockBytes + p.GradBlock + stateBlocks
	s.count++
	s.requested = report.PlusRequested(s.requested, p.Requested)
}

func (s *parameterSum) addSum(o *parameterSum) {
	s.weight += o.weight
	s.gradient += o.gradient
	s.state += o.state
	s.blocks += o.blocks
	s.count += o.count
}

func (s *parameterSum) bytes() uint64 { return s.weight + s.gradient + s.state }

func (s *parameterSum) cells(look layout.Style) []layout.Cell {
	return []layout.Cell{{Text: s.name, Style: look}, {Text: layout.Bytes(s.weight), Style: look},
		{Text: layout.BytesOrDash(s.gradient), Style: look}, {Text: layout.BytesOrDash(s.state), Style: look},
		{Text: layout.Bytes(s.bytes()), Style: layout.Strong}}
}

// writeParameters prints what belongs to each parameter, then the buffers, then what optimizers keep for themselves.
func writeParameters(p *layout.Page, s *report.Summary) {
	for _, kind := range []struct{ category, title, one, many string }{
		{"parameter", "Parameters of the model", "smaller parameter", "smaller parameters"},
		{"buffer", "Buffers of the model", "smaller buffer", "smaller buffers"},
		{"optimizer", "Optimizers, for themselves", "smaller one", "smaller ones"},
	} {
		var list []report.Parameter
		for _, parameter := range s.Training.Parameters {
			if parameter.Category == kind.category {
				list = append(list, parameter)
			}
		}
		if len(list) > 0 {
			p.Title(fmt.Sprintf("%s: %s", kind.title, layout.Count(uint64(len(list)))))
			p.Gap()
			writeParameterTable(p, list, kind.one, kind.many)
			p.Gap()
		}
	}
	p.Item(
		"Sizes in the tables are those of the elements, as the framework counts them. --csv and --json give exact bytes and each state of the optimizer by its name.")
}

// foldedParameters joins parameters of the same size in repeated modules, in the model's order.
func foldedParameters(p *layout.Page, list []report.Parameter) []parameterSum {
	names, bytes, sizes := make([]string, len(list)), make([]uint64, len(list)), make([]uint64, len(list))
	for i := range list {
		var sum parameterSum
		sum.add(&list[i])
		names[i], bytes[i], sizes[i] = list[i].Name, sum.bytes(), list[i].Bytes
	}
	folds := fold.Sized(names, bytes, sizes)
	if p.Unfolded {
		folds = fold.FoldRows("", names, bytes)
	}
	slices.SortFunc(folds, func(a, b fold.Fold) int {
		return cmp.Compare(slices.Min(a.Members), slices.Min(b.Members))
	})
	sums := make([]parameterSum, len(folds))
	for n, f := range folds {
		sums[n].name, sums[n].each = sanitize.Text(f.Name), p.Each(len(f.Members), f.Min, f.Max)
		for _, i := range f.Members {
			sums[n].add(&list[i])
		}
	}
	return sums
}

// writeParameterTable prints the largest parameters in the model's order, and the sums.
func writeParameterTable(p *layout.Page, list []report.Parameter, one, many string) {
	var total parameterSum
	for i := range list {
		total.add(&list[i])
	}
	sums := foldedParameters(p, list)
	order := make([]int, len(sums)) // largest first
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sums[b].bytes(), sums[a].bytes()) })
	shown := make([]bool, len(sums))
	for _, i := range order[:min(len(order), p.RowLimit())] {
		shown[i] = true
	}
	var rows [][]layout.Cell
	var each []string
	var rest parameterSum
	for i := range sums {
		if shown[i] {
			rows, each = append(rows, sums[i].cells(layout.Plain)), append(each, sums[i].each)
		} else {
			rest.addSum(&sums[i])
		}
	}
	if rest.count > 0 {
		rest.name = layout.Plural(rest.count, one, many) + ", with -n 0"
		rows, each = append(rows, rest.cells(layout.Plain)), append(each, "")
	}
	total.name = "total"
	rows, each = append(rows, total.cells(layout.Strong)), append(each, "")
	for _, row := range total.blockRows() {
		rows, each = append(rows, row), append(each, "")
	}
	columns, rows := layout.EachColumn([]layout.Column{{Title: "name"}, {Title: "weight", Right: true},
		{Title: "gradient", Right: true}, {Title: "optimizer", Right: true}, {Title: "total", Right: true}}, rows, each)
	p.Table(columns, rows)
	p.Gap()
	p.Item(total.blockRemark())
}

// requestsKnown reports whether it is known of all blocks what was requested.
func (s *parameterSum) requestsKnown() bool {
	return s.requested != nil && s.requested.UnknownBytes == 0 && s.requested.Bytes+s.requested.RestBytes == s.blocks &&
		s.requested.Bytes >= s.bytes()
}

// blockRows lead from the bytes of the elements to those of the blocks, where it is known what was requested.
func (s *parameterSum) blockRows() (rows [][]layout.Cell) {
	if !s.requestsKnown() || s.blocks == s.bytes() {
		return nil
	}
	add := func(name string, bytes uint64, look layout.Style) {
		rows = append(rows, []layout.Cell{{Text: name, Style: look}, {}, {}, {},
			{Text: layout.Bytes(bytes), Style: look}})
	}
	if others := s.requested.Bytes - s.bytes(); others > 0 {
		add("other tensors in their blocks", others, layout.Plain)
	}
	add("rounding and unsplit remainder", s.requested.RestBytes, layout.Slack)
	add("their blocks", s.blocks, layout.Strong)
	return rows
}

// blockRemark describes the bytes of the blocks beyond the elements, exactly.
func (s *parameterSum) blockRemark() string {
	more := s.blocks - min(s.blocks, s.bytes())
	switch {
	case more == 0:
		return fmt.Sprintf("%s of elements; their blocks hold as much.", layout.ExactBytes(s.bytes()))
	case !s.requestsKnown():
		return fmt.Sprintf(
			"%s of elements; their blocks hold %s. The other %s are rounding, and blocks that several share, which count with each of them.", layout.ExactBytes(s.bytes()), layout.ExactBytes(s.blocks), layout.ExactBytes(more))
	case s.requested.Bytes > s.bytes():
		return fmt.Sprintf(
			"%s of elements; %s were requested for their blocks, which hold %s. A block that several share counts with each of them.", layout.ExactBytes(s.bytes()), layout.ExactBytes(s.requested.Bytes), layout.ExactBytes(s.blocks))
	}
	return fmt.Sprintf("%s of elements, all of which was requested; their blocks hold %s.",
		layout.ExactBytes(s.bytes()), layout.ExactBytes(s.blocks))
}

// parameterRows is the CSV of parameters and buffers; the last columns are optimizer state by name.
func parameterRows(s *report.Summary, _ layout.Options, write layout.UnitWriter) iter.Seq[[]string] {
	var states []string
	known := make(map[string]bool)
	for _, parameter := range s.Training.Parameters {
		for _, state := range parameter.States {
			if !known[state.Name] {
				known[state.Name] = true
				states = append(states, state.Name)
			}
		}
	}
	return func(yield func([]string) bool) {
		if !yield(append([]string{"name", "category", "weight", "weight_block", "gradient", "gradient_block",
			"optimizer_state", "optimizer_state_block"}, states...)) {
			return
		}
		for i := range s.Training.Parameters {
			if !yield(parameterRow(&s.Training.Parameters[i], states, write)) {
				return
			}
		}
	}
}

func parameterRow(parameter *report.Parameter, states []string, write layout.UnitWriter) []string {
	state, stateBlocks := parameter.StateBytes()
	row := []string{parameter.Name, parameter.Category, write(parameter.Bytes), write(parameter.BlockBytes),
		write(parameter.Gradient), write(parameter.GradBlock), write(state), write(stateBlocks)}
	bytes := make(map[string]uint64, len(parameter.States))
	for _, state := range parameter.States {
		bytes[state.Name] += state.Bytes
	}
	for _, name := range states {
		row = append(row, write(bytes[name]))
	}
	return row
}

// ParameterSheets list what belongs to each parameter and buffer, and to the optimizers; nil if a framework named none.
func ParameterSheets(s *report.Summary, rows int) []layout.Sheet {
	if !s.Trains() {
		return nil
	}
	return layout.SheetsOf(rows, func(p *layout.Page) { writeParameters(p, s) })
}
