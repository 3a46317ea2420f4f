package render

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"memtrace/analyzer"
)

// stateBytes sums up what optimizers keep for a parameter.
func stateBytes(p *analyzer.Parameter) (bytes, blocks uint64) {
	for _, state := range p.States {
		bytes += state.Bytes
		blocks += state.BlockBytes
	}
	return bytes, blocks
}

// parameterSum is a row in the making: one parameter, or several.
type parameterSum struct {
	name                    string
	weight, gradient, state uint64
	blocks                  uint64 // of all three
}

func (s *parameterSum) add(p *analyzer.Parameter) {
	state, stateBlocks := stateBytes(p)
	s.weight += p.Bytes
	s.gradient += p.Gradient
	s.state += state
	s.blocks += p.BlockBytes + p.GradBlock + stateBlocks
}

func (s *parameterSum) bytes() uint64 { return s.weight + s.gradient + s.state }

func (s *parameterSum) cells(look style) []cell {
	return []cell{{s.name, look}, {Bytes(s.weight), look}, {orBlank(s.gradient), look}, {orBlank(s.state), look}, {Bytes(s.bytes()), strong}}
}

func orBlank(bytes uint64) string {
	if bytes == 0 {
		return "-"
	}
	return Bytes(bytes)
}

// parameters prints what belongs to each parameter, then the buffers, then what optimizers keep for themselves.
func (p *page) parameters(s *analyzer.Summary) {
	for _, kind := range []struct{ category, title, one, many string }{
		{"parameter", "Parameters of the model", "smaller parameter", "smaller parameters"},
		{"buffer", "Buffers of the model", "smaller buffer", "smaller buffers"},
		{"optimizer", "Optimizers, for themselves", "smaller one", "smaller ones"},
	} {
		var list []analyzer.Parameter
		for _, parameter := range s.Training.Parameters {
			if parameter.Category == kind.category {
				list = append(list, parameter)
			}
		}
		if len(list) > 0 {
			p.title(fmt.Sprintf("%s: %s", kind.title, Count(uint64(len(list)))))
			p.gap()
			p.parameterTable(list, kind.one, kind.many)
			p.gap()
		}
	}
	p.item("Sizes in the tables are those of the elements, as the framework counts them. --csv and --json give exact bytes and each state of the optimizer by its name.")
}

// parameterTable prints the largest parameters in the model's order, and the sums.
func (p *page) parameterTable(list []analyzer.Parameter, one, many string) {
	var total parameterSum
	sums := make([]parameterSum, len(list))
	order := make([]int, len(list)) // largest first
	for i := range list {
		sums[i].name = clean(list[i].Name)
		sums[i].add(&list[i])
		total.add(&list[i])
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sums[b].bytes(), sums[a].bytes()) })
	shown := make([]bool, len(list))
	for _, i := range order[:min(len(order), p.o.rows())] {
		shown[i] = true
	}
	var rows [][]cell
	var rest parameterSum
	hidden := uint64(0)
	for i := range list {
		if shown[i] {
			rows = append(rows, sums[i].cells(plain))
		} else {
			rest.add(&list[i])
			hidden++
		}
	}
	if hidden > 0 {
		rest.name = plural(hidden, one, many) + ", with -n 0"
		rows = append(rows, rest.cells(plain))
	}
	total.name = "together"
	rows = append(rows, total.cells(strong))
	p.table([]column{{title: "name"}, {title: "weight", right: true}, {title: "gradient", right: true}, {title: "optimizer", right: true}, {title: "together", right: true}}, rows)
	p.gap()
	p.item(fmt.Sprintf("%s of elements; their blocks hold %s, %s more: rounding, and blocks that several share, which count with each of them", exactBytes(total.bytes()), exactBytes(total.blocks), exactBytes(total.blocks-min(total.blocks, total.bytes()))))
}

// exactBytes writes all digits.
func exactBytes(n uint64) string { return Count(n) + " B" }

// parameterRows is the CSV of parameters and buffers; optimizer state by name stands in the last columns.
func parameterRows(s *analyzer.Summary, _ Options, write unitWriter) iter.Seq[[]string] {
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
		if !yield(append([]string{"name", "category", "weight", "weight_block", "gradient", "gradient_block", "optimizer_state", "optimizer_state_block"}, states...)) {
			return
		}
		for i := range s.Training.Parameters {
			if !yield(parameterRow(&s.Training.Parameters[i], states, write)) {
				return
			}
		}
	}
}

func parameterRow(parameter *analyzer.Parameter, states []string, write unitWriter) []string {
	state, stateBlocks := stateBytes(parameter)
	row := []string{parameter.Name, parameter.Category, write(parameter.Bytes), write(parameter.BlockBytes), write(parameter.Gradient), write(parameter.GradBlock), write(state), write(stateBlocks)}
	bytes := make(map[string]uint64, len(parameter.States))
	for _, state := range parameter.States {
		bytes[state.Name] += state.Bytes
	}
	for _, name := range states {
		row = append(row, write(bytes[name]))
	}
	return row
}
