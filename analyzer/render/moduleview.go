package render

import (
	"fmt"
	"iter"
	"strings"

	"memtrace/analyzer"
)

const (
	moduleIndent     = "  "
	moduleIndents    = 40  // deeper modules stand below one another
	moduleLeast      = 200 // a module with less than the whole's 200th part, at every moment, is summed up with its like
	moduleCategories = 2   // named in a row
	moduleWeighty    = 20  // and only those with a 20th of the row
)

// moduleTable is the table of modules in the making.
type moduleTable struct {
	page  *page
	root  *analyzer.Module
	short []string
	used  []bool // categories that some row names
	rows  [][]cell
	all   bool // nothing is summed up
	deep  bool // some modules lie below the depth
}

// modules prints the tree.
func (p *page) modules(s *analyzer.Summary) {
	t := s.Training
	m := moduleTable{page: p, root: t.Modules, short: shortNames(t.Categories), used: make([]bool, len(t.Categories)), all: p.o.Rows < 0}
	p.title("Modules at " + moduleMoment(s, t))
	p.gap()
	m.add(t.Modules, 0)
	p.table([]column{{title: "module"}, {title: "at peak", right: true}, {title: "forward", right: true}, {title: "backward", right: true}, {title: "optimizer", right: true, optional: 2},
		{title: "own", right: true, optional: 1}, {title: "of it", optional: 3}}, m.rows)
	p.gap()
	p.item("Each row counts what lies below it, too; own is what the module itself held at the peak. forward, backward and optimizer are the highest moments of the iteration at which that phase allocated.")
	if words := legend(t.Categories, m.used); words != "" {
		p.item(fmt.Sprintf("Of it, at the peak, by the rules %s, is: %s.", clean(t.Rules), words))
	}
	if m.deep {
		p.item(fmt.Sprintf("Modules below level %d are part of those above them; --depth shows more.", p.o.depth()))
	}
}

// moduleMoment says of which iteration the tree speaks.
func moduleMoment(s *analyzer.Summary, t *analyzer.Training) string {
	what := fmt.Sprintf("the highest peak of %s", levelName(s, t))
	if t.Highest < 0 {
		return what
	}
	it := &t.Iterations[t.Highest]
	what += fmt.Sprintf(", %s, in %s", moment(it.Peak.TimeNS), clean(it.Peak.Phase))
	switch {
	case t.IterationsBy == analyzer.IterationsByNothing:
		return what
	case !it.Ended:
		return what + " after the last iteration"
	}
	return fmt.Sprintf("%s of iteration %d", what, it.Number)
}

func (m *moduleTable) add(module *analyzer.Module, depth int) {
	m.row(module, depth)
	if len(module.Children) == 0 {
		return
	}
	if depth >= m.page.o.depth() {
		m.deep = true
		return
	}
	children := inOrder(module.Children)
	if !m.all {
		children = mergeAlike(children)
	}
	var small []analyzer.Module
	for i := range children {
		if !m.all && m.slight(&children[i]) {
			small = append(small, children[i])
		} else {
			m.add(&children[i], depth+1)
		}
	}
	switch len(small) {
	case 0:
	case 1:
		m.add(&small[0], depth+1)
	default:
		rest := sumModules(fmt.Sprintf("%d more", len(small)), small)
		m.row(&rest, depth+1)
	}
}

// slight reports whether a module never matters.
func (m *moduleTable) slight(module *analyzer.Module) bool {
	for _, name := range moduleMoments {
		_, whole := momentOf(m.root, name)
		_, part := momentOf(module, name)
		if sumOf(part) > sumOf(whole)/moduleLeast {
			return false
		}
	}
	return true
}

func (m *moduleTable) row(module *analyzer.Module, depth int) {
	row := []cell{{strings.Repeat(moduleIndent, min(depth, moduleIndents)) + moduleName(module, depth), plain}}
	for _, name := range moduleMoments {
		_, subtree := momentOf(module, name)
		row = append(row, cell{orBlank(sumOf(subtree)), plain})
	}
	row[1].style = strong
	own, subtree := momentOf(module, "peak")
	m.rows = append(m.rows, append(row, cell{orBlank(sumOf(own)), plain}, cell{m.categories(subtree), plain}))
}

func moduleName(module *analyzer.Module, depth int) string {
	switch {
	case module.Name != "":
		return clean(module.Name)
	case module.Path != "":
		return clean(module.Path)
	case depth == 0:
		return "all modules"
	}
	return "(no name)"
}

// categories names what most of a row's bytes at the peak are.
func (m *moduleTable) categories(held []uint64) string {
	whole := sumOf(held)
	var parts []string
	for _, i := range heaviest(held) {
		if len(parts) == moduleCategories || held[i] < whole/moduleWeighty {
			break
		}
		m.used[i] = true
		parts = append(parts, fmt.Sprintf("%s %.0f%%", m.short[i], 100*float64(held[i])/float64(whole)))
	}
	return strings.Join(parts, ", ")
}

// moduleRows is the CSV of modules: a row for each module and moment, with all categories.
func moduleRows(s *analyzer.Summary, _ Options, write unitWriter) iter.Seq[[]string] {
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

// eachModule yields the rows of a tree; false if the reader has enough.
func eachModule(module *analyzer.Module, depth int, write unitWriter, yield func([]string) bool) bool {
	path := module.Path
	if path == "" {
		path = module.Name
	}
	for _, name := range moduleMoments {
		own, subtree := momentOf(module, name)
		if own == nil && subtree == nil {
			continue
		}
		row := []string{path, fmt.Sprint(depth), name, write(sumOf(subtree)), write(sumOf(own))}
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
