package check

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"memtrace/internal/moment"
	"memtrace/internal/safefile"
)

// BudgetFile is the budget that is used where no gate is given.
const BudgetFile = "memtrace.toml"

// maxBudget bounds a budget file, in bytes.
const maxBudget = 256 << 10

// Run is a named part of a budget.
type Run struct {
	Name      string
	Gates     []Gate // all but those of KindCompare
	Compare   []Gate
	Baseline  string // its path; "": none
	Tolerance Amount
	At        string // moments, as for memtrace report; "": the peaks, and the whole run
	From, To  string
}

// Budget is a budget file.
type Budget struct {
	Path string
	Runs []Run // in the order of their names; one without a name if the file has no run tables
}

// LoadBudget reads a file. Errors name the file and, where something in it is wrong, the line and the column.
func LoadBudget(path string) (*Budget, error) {
	text, err := safefile.Read(path, maxBudget)
	if errors.Is(err, safefile.ErrTooLarge) {
		return nil, fmt.Errorf("%s: a budget may have %d bytes", path, maxBudget)
	}
	if err != nil {
		return nil, err
	}
	return ParseBudget(path, text)
}

// ParseBudget reads the text of a file. Paths in it begin at the file's folder.
func ParseBudget(path string, text []byte) (*Budget, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // as some editors begin a file
	all, own, wrong := decodeBudget(text)
	if wrong != nil {
		return nil, wrong.in(path, text)
	}
	if len(own) == 0 {
		own = []section{{}}
	}
	b := &Budget{Path: path}
	for i := range own {
		run, wrong := newRun(&all, &own[i])
		if wrong != nil {
			return nil, wrong.in(path, text)
		}
		if run.Baseline != "" && !filepath.IsAbs(run.Baseline) {
			run.Baseline = filepath.Join(filepath.Dir(path), run.Baseline)
		}
		b.Runs = append(b.Runs, run)
	}
	return b, nil
}

// newRun makes a run of what is for all runs and what is its own, which wins.
func newRun(all, own *section) (Run, *mistake) {
	r := Run{Name: own.name, Baseline: cmp.Or(own.baseline, all.baseline), At: cmp.Or(own.at, all.at),
		From: cmp.Or(own.from, all.from), To: cmp.Or(own.to, all.to)}
	if wrong := r.checkMoments(all, own); wrong != nil {
		return r, wrong
	}
	var err error
	if r.Tolerance, err = ParseTolerance(cmp.Or(own.tolerance, all.tolerance, "2%")); err != nil {
		return r, &mistake{within(all, own, own.tolerance).key("tolerance"), fmt.Errorf("tolerance: %w", err)}
	}
	for _, s := range []*section{all, own} {
		for subject, limit := range s.max {
			g, err := maxGate(subject, limit)
			if err != nil {
				return r, &mistake{s.key("max", subject), err}
			}
			r.Override(g)
		}
	}
	sortGates(r.Gates)
	for _, s := range []*section{all, own} {
		for i, text := range s.assert {
			g, err := ParseAssert(text)
			if err != nil {
				return r, &mistake{s.key("assert", element(i)), err}
			}
			r.Gates = append(r.Gates, g)
		}
		for i, text := range s.compare {
			g, err := ParseCompare(text, r.Tolerance)
			if err != nil {
				return r, &mistake{s.key("compare", element(i)), err}
			}
			r.Compare = append(r.Compare, g)
		}
	}
	return r, nil
}

// checkMoments refuses what is no moment.
func (r *Run) checkMoments(all, own *section) *mistake {
	var moments [3]moment.At
	for i, key := range []struct{ name, text, own string }{{"at", r.At, own.at}, {"from", r.From, own.from},
		{"to", r.To, own.to}} {
		var err error
		if moments[i], err = moment.Parse(key.text); err != nil {
			return &mistake{within(all, own, key.own).key(key.name), fmt.Errorf("%s: %w", key.name, err)}
		}
	}
	if err := moment.CheckWindow(moments[1], moments[2]); err != nil {
		name, ofRun := "from", own.from
		if r.From == "" {
			name, ofRun = "to", own.to
		}
		return &mistake{within(all, own, ofRun).key(name), err}
	}
	return nil
}

// maxGate makes a gate of a limit as TOML has it: a text with a unit, or a number of bytes.
func maxGate(subject string, limit any) (Gate, error) {
	switch limit := limit.(type) {
	case string:
		return ParseMax(subject + "=" + limit)
	case int64:
		return ParseMax(subject + "=" + strconv.FormatInt(limit, 10))
	}
	return Gate{}, fmt.Errorf("%s: write the limit as a text, such as \"10 GiB\"", subject)
}

// Override adds a limit, in place of one on the same subject.
func (r *Run) Override(g Gate) {
	r.Gates = slices.DeleteFunc(slices.Clone(r.Gates), func(o Gate) bool {
		return o.Kind == KindMax && o.Subject == g.Subject
	})
	r.Gates = append(r.Gates, g)
}

// sortGates orders limits as the documentation lists their kinds: TOML's tables have no order.
func sortGates(list []Gate) {
	place := func(g Gate) int {
		return slices.IndexFunc(subjectKinds, func(k subjectKind) bool { return k.name == g.Subject.Kind })
	}
	slices.SortFunc(list, func(a, b Gate) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a.Text, b.Text))
	})
}

// Pick returns the run of a name; "" is the only one. flag is the one that names it, for errors.
func (b *Budget) Pick(name, flag string) (*Run, error) {
	var names []string
	for i := range b.Runs {
		if b.Runs[i].Name == name || name == "" && len(b.Runs) == 1 {
			return &b.Runs[i], nil
		}
		names = append(names, b.Runs[i].Name)
	}
	switch {
	case name == "":
		return nil, fmt.Errorf("%s has the runs %s; choose one with %s", b.Path, strings.Join(names, ", "), flag)
	case len(b.Runs) == 1 && b.Runs[0].Name == "":
		return nil, fmt.Errorf("%s has no run %q; it has no [run.NAME] tables", b.Path, name)
	}
	return nil, fmt.Errorf("%s has no run %q; %s", b.Path, name, choose(name, names, "it has"))
}
