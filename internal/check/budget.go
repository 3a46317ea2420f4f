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

	"github.com/pelletier/go-toml/v2"

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

// section is what the file may have at its top, for every run, and in each run. docs/memtrace.schema.json has the same.
type section struct {
	Max       map[string]any `toml:"max"`
	Assert    []string       `toml:"assert"`
	Compare   []string       `toml:"compare"`
	Baseline  string         `toml:"baseline"`
	Tolerance string         `toml:"tolerance"`
	At        string         `toml:"at"`
	From      string         `toml:"from"`
	To        string         `toml:"to"`
}

type budgetText struct {
	section
	Run map[string]section `toml:"run"`
}

// LoadBudget reads a file. Errors name the file and, where something in it is wrong, the line.
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
	var file budgetText
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&file); err != nil {
		return nil, tomlError(path, err)
	}
	b := &Budget{Path: path}
	if len(file.Run) == 0 {
		file.Run = map[string]section{"": {}}
	}
	names := make([]string, 0, len(file.Run))
	for name := range file.Run {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		run, wrong, err := newRun(name, file.section, file.Run[name])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, lineOf(text, wrong), err)
		}
		if run.Baseline != "" && !filepath.IsAbs(run.Baseline) {
			run.Baseline = filepath.Join(filepath.Dir(path), run.Baseline)
		}
		b.Runs = append(b.Runs, run)
	}
	return b, nil
}

// newRun makes a run of what is for all runs and what is its own, which wins. wrong is the text that an error is about.
func newRun(name string, all, own section) (r Run, wrong string, err error) {
	r = Run{Name: name, Baseline: cmp.Or(own.Baseline, all.Baseline), At: cmp.Or(own.At, all.At),
		From: cmp.Or(own.From, all.From), To: cmp.Or(own.To, all.To)}
	if wrong, err = r.checkMoments(); err != nil {
		return r, wrong, err
	}
	wrong = cmp.Or(own.Tolerance, all.Tolerance, "2%")
	if r.Tolerance, err = ParseTolerance(wrong); err != nil {
		return r, wrong, fmt.Errorf("tolerance: %w", err)
	}
	for _, max := range []map[string]any{all.Max, own.Max} {
		for subject, limit := range max {
			g, err := maxGate(subject, limit)
			if err != nil {
				return r, subject, err
			}
			r.Override(g)
		}
	}
	sortGates(r.Gates)
	for _, text := range slices.Concat(all.Assert, own.Assert) {
		g, err := ParseAssert(text)
		if err != nil {
			return r, text, err
		}
		r.Gates = append(r.Gates, g)
	}
	for _, text := range slices.Concat(all.Compare, own.Compare) {
		g, err := ParseCompare(text, r.Tolerance)
		if err != nil {
			return r, text, err
		}
		r.Compare = append(r.Compare, g)
	}
	if r.Baseline == "" && len(r.Compare) > 0 {
		return r, r.Compare[0].Text, fmt.Errorf("compare needs a baseline: baseline = \"base.json\"")
	}
	return r, "", nil
}

// checkMoments refuses what is no moment, and returns its text.
func (r *Run) checkMoments() (wrong string, err error) {
	var moments [3]moment.At
	for i, key := range []struct{ name, text string }{{"at", r.At}, {"from", r.From}, {"to", r.To}} {
		if moments[i], err = moment.Parse(key.text); err != nil {
			return key.text, fmt.Errorf("%s: %w", key.name, err)
		}
	}
	return cmp.Or(r.From, r.To), moment.CheckWindow(moments[1], moments[2])
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

// tomlError names the line of a mistake in the file.
func tomlError(path string, err error) error {
	var syntax *toml.DecodeError
	var strict *toml.StrictMissingError
	switch {
	case errors.As(err, &strict) && len(strict.Errors) > 0:
		first := strict.Errors[0]
		line, _ := first.Position()
		key := first.Key()
		wrong := ""
		if len(key) > 0 {
			wrong = key[len(key)-1]
		}
		known := []string{"max", "assert", "compare", "baseline", "tolerance", "at", "from", "to", "run"}
		return fmt.Errorf("%s:%d: unknown key %q; %s", path, line, wrong, choose(wrong, known, "choose from"))
	case errors.As(err, &syntax):
		line, _ := syntax.Position()
		return fmt.Errorf("%s:%d: %s", path, line, strings.TrimPrefix(syntax.Error(), "toml: "))
	}
	return fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "toml: "))
}

// lineOf is the number of the first line that has a text as a key or a value, else 1.
func lineOf(text []byte, wrong string) int {
	for i, line := range strings.Split(string(text), "\n") {
		bare := strings.TrimSpace(line)
		if wrong != "" && !strings.HasPrefix(bare, "#") && strings.Contains(bare, wrong) {
			return i + 1
		}
	}
	return 1
}

// Pick returns the run of a name; "" is the only one.
func (b *Budget) Pick(name string) (*Run, error) {
	var names []string
	for i := range b.Runs {
		if b.Runs[i].Name == name || name == "" && len(b.Runs) == 1 {
			return &b.Runs[i], nil
		}
		names = append(names, b.Runs[i].Name)
	}
	switch {
	case name == "":
		return nil, fmt.Errorf("%s has the runs %s; choose one with --run", b.Path, strings.Join(names, ", "))
	case len(b.Runs) == 1 && b.Runs[0].Name == "":
		return nil, fmt.Errorf("%s has no run %q; it has no [run.NAME] tables", b.Path, name)
	}
	return nil, fmt.Errorf("%s has no run %q; %s", b.Path, name, choose(name, names, "it has"))
}
