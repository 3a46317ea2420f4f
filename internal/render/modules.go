package render

import (
	"fmt"
	"iter"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

const (
	moduleIndent  = "  "
	moduleIndents = 40 // deeper modules are not indented further
	// a module with less than the whole's 200th part, at every moment, is summed up with its like
	moduleLeast      = 200
	moduleCategories = 2  // named in a row
	moduleWeighty    = 20 // and only those with a 20th of the row
	moduleWraps      = 5  // a module only wraps a child that has all but a fifth of it
)

// moduleTable is the table of modules in the making.
type moduleTable struct {
	page  *layout.Page
	root  *report.Module
	short []string
	used  []bool // categories that some row names
	rows  [][]layout.Cell
	each  []string // for rows of several modules, their number and the bytes of each
	all   bool     // nothing is summed up
	deep  bool     // some modules are below the depth
}

// writeModules prints the tree.
func writeModules(p *layout.Page, s *report.Summary) {
	t := s.Training
	m := moduleTable{page: p, root: t.Modules, short: shortNames(t.Categories), used: make([]bool, len(t.Categories)),
		all: p.Rows < 0}
	p.Title("Modules at " + moduleMoment(s, t))
	p.Gap()
	root := oneModule(*t.Modules)
	m.add(&root, 0, 0)
	columns, rows := layout.EachColumn([]layout.Column{{Title: "module"}, {Title: "at peak", Right: true},
		{Title: "forward", Right: true}, {Title: "backward", Right: true},
		{Title: "optimizer", Right: true, Optional: 2},
		{Title: "own", Right: true, Optional: 1}, {Title: "of it", Optional: 3}}, m.rows, m.each)
	shown := p.Table(columns, rows)
	p.Gap()
	p.Item(
		"Each row counts what lies below it, too; own is what the module itself held at the peak. forward, backward and optimizer are the highest moments of the iteration at which that phase allocated.")
	if words := legend(t.Categories, m.used); words != "" && shown[len(shown)-1] {
		p.Item(fmt.Sprintf("Abbreviations, at the peak (rule set %s): %s.", sanitize.Text(t.Rules), words))
	}
	if m.deep {
		p.Item(fmt.Sprintf("Modules below level %d are part of those above them; --depth shows more.", p.DepthLimit()))
	}
}

// moduleMoment names the iteration of the tree.
func moduleMoment(s *report.Summary, t *report.Training) string {
	what := fmt.Sprintf("the highest peak of %s", layout.TrainingLevel(s, t))
	if t.Highest < 0 {
		return what
	}
	it := &t.Iterations[t.Highest]
	what += fmt.Sprintf(", %s, in %s", layout.Moment(it.Peak.TimeNS), sanitize.Text(it.Peak.Phase))
	switch {
	case t.IterationsBy == report.IterationsByNothing:
		return what
	case t.IsBefore(t.Highest):
		return what
	case !it.Ended:
		return what + " after the last iteration"
	}
	return fmt.Sprintf("%s of iteration %d", what, it.Number)
}

// add prints a module that is indent levels below the root; depth is how many of them count.
func (m *moduleTable) add(module *moduleFold, indent, depth int) {
	m.row(module, indent)
	if len(module.Children) == 0 {
		return
	}
	if depth >= m.page.DepthLimit() {
		m.deep = true
		return
	}
	children := m.children(&module.Module)
	var small []report.Module
	for i := range children {
		if !m.all && m.slight(&children[i].Module) {
			small = append(small, children[i].Module)
			continue
		}
		m.add(&children[i], indent+1, m.below(module, &children[i], depth))
	}
	switch len(small) {
	case 0:
	case 1:
		last := oneModule(small[0])
		m.add(&last, indent+1, depth+1)
	default:
		rest := oneModule(sumModules(fmt.Sprintf("%d more", len(small)), small))
		m.row(&rest, indent+1)
	}
}

// children are a module's in the order in which they are shown.
func (m *moduleTable) children(module *report.Module) []moduleFold {
	ordered := inOrder(module.Children)
	if !m.all && !m.page.Unfolded {
		return foldLayers(ordered)
	}
	var list []moduleFold
	for _, child := range ordered {
		list = append(list, oneModule(child))
	}
	return list
}

// below is the depth of a child. If no depth was requested, levels on the path to the module that holds nearly all of
// the memory do not count: they only wrap it.
func (m *moduleTable) below(module, child *moduleFold, depth int) int {
	if !m.page.DepthAsked && atPeak(&child.Module) >= atPeak(&module.Module)/moduleWraps*(moduleWraps-1) &&
		atPeak(m.root)/2 <= atPeak(&child.Module) {
		return depth
	}
	return depth + 1
}

// slight reports whether a module is negligible at all moments.
func (m *moduleTable) slight(module *report.Module) bool {
	for _, name := range moduleMoments {
		_, whole := momentOf(m.root, name)
		_, part := momentOf(module, name)
		if layout.Sum(part) > layout.Sum(whole)/moduleLeast {
			return false
		}
	}
	return true
}

func (m *moduleTable) row(fold *moduleFold, depth int) {
	module := &fold.Module
	m.each = append(m.each, m.page.Each(fold.count, fold.least, fold.most))
	row := []layout.Cell{{Text: strings.Repeat(moduleIndent, min(depth, moduleIndents)) + moduleName(module, depth)}}
	for _, name := range moduleMoments {
		_, subtree := momentOf(module, name)
		row = append(row, layout.Cell{Text: layout.BytesOrDash(layout.Sum(subtree))})
	}
	row[1].Style = layout.Strong
	own, subtree := momentOf(module, "peak")
	m.rows = append(m.rows, append(row, layout.Cell{Text: layout.BytesOrDash(layout.Sum(own))},
		layout.Cell{Text: m.categories(subtree)}))
}

func moduleName(module *report.Module, depth int) string {
	switch {
	case module.Name != "":
		return sanitize.Text(module.Name)
	case module.Path != "":
		return sanitize.Text(module.Path)
	case depth == 0:
		return "all modules"
	}
	return "(no name)"
}

// categories names what most of a row's bytes at the peak are.
func (m *moduleTable) categories(held []uint64) string {
	whole := layout.Sum(held)
	var parts []string
	for _, i := range layout.Heaviest(held) {
		if len(parts) == moduleCategories || held[i] < whole/moduleWeighty {
			break
		}
		m.used[i] = true
		parts = append(parts, fmt.Sprintf("%s %.0f%%", m.short[i], 100*float64(held[i])/float64(whole)))
	}
	return strings.Join(parts, ", ")
}

// moduleRows is the CSV of modules: a row for each module and moment, with all categories.
func moduleRows(s *report.Summary, _ layout.Options, write layout.UnitWriter) iter.Seq[[]string] {
	t := s.Training
	header := []string{"module", "depth", "moment", "subtree", "own"}
	for _, part := range []string{"subtree: ", "own: "} {
		for _, category := range t.Categories {
			header = append(header, part+category)
		}
	}
	return func(yield func([]string) bool) {
		if yield(header) {
			eachModule(t.Modules, 0, write, yield)
		}
	}
}

// eachModule yields the rows of a tree; false if the consumer stopped.
func eachModule(module *report.Module, depth int, write layout.UnitWriter, yield func([]string) bool) bool {
	path := module.Path
	if path == "" {
		path = module.Name
	}
	for _, name := range moduleMoments {
		own, subtree := momentOf(module, name)
		if own == nil && subtree == nil {
			continue
		}
		row := []string{path, fmt.Sprint(depth), name, write(layout.Sum(subtree)), write(layout.Sum(own))}
		for _, list := range [][]uint64{subtree, own} {
			for _, bytes := range list {
				row = append(row, write(bytes))
			}
		}
		if !yield(row) {
			return false
		}
	}
	for i := range module.Children {
		if !eachModule(&module.Children[i], depth+1, write, yield) {
			return false
		}
	}
	return true
}
