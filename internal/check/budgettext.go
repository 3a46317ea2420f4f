package check

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// section is what a budget file may have at its top, for every run, and in each run. docs/memtrace.schema.json has the
// same.
type section struct {
	name string         // of the run; "" at the top
	max  map[string]any // limits as TOML has them, by subject

	assert, compare                   []string
	baseline, tolerance, at, from, to string
}

// keyPath is where something is in the file: the keys that lead to it, and the element of a list.
type keyPath []string

// element is the part of a path for an element of a list.
func element(i int) string { return "[" + strconv.Itoa(i) + "]" }

// key is the path of something in the section.
func (s *section) key(keys ...string) keyPath {
	if s.name == "" {
		return keys
	}
	return append(keyPath{"run", s.name}, keys...)
}

// within is the section that a value is from: the run's own where that has one.
func within(all, own *section, ofRun string) *section {
	if ofRun != "" {
		return own
	}
	return all
}

// mistake is what is wrong at a place of a budget file.
type mistake struct {
	at  keyPath
	err error
}

// in is the mistake as an error with the place in the file.
func (m *mistake) in(path string, text []byte) error {
	var syntax *toml.DecodeError
	if errors.As(m.err, &syntax) {
		line, column := syntax.Position()
		return fmt.Errorf("%s:%d:%d: %s", path, line, max(column, 1), syntaxWords(text, line, syntax))
	}
	place := placeOf(text, m.at)
	return fmt.Errorf("%s:%d:%d: %w", path, place.Line, place.Column, m.err)
}

// budgetKey is a key of a section.
type budgetKey struct {
	name string
	like string // what it takes, in words
	take func(s *section, value any) bool
}

// budgetKeys are those of every section.
var budgetKeys = []budgetKey{
	{"max", `a table of limits, such as max.peak = "10GiB"`, func(s *section, value any) (ok bool) {
		s.max, ok = value.(map[string]any)
		return ok
	}},
	{"assert", `a list of texts, such as ["no-finding=warning"]`, takeTexts(func(s *section) *[]string { return &s.assert })},
	{"compare", `a list of texts, such as ["peak"]`, takeTexts(func(s *section) *[]string { return &s.compare })},
	{"baseline", `the name of a file, such as "base.json"`, takeText(func(s *section) *string { return &s.baseline })},
	{"tolerance", `a text, such as "2%"`, takeText(func(s *section) *string { return &s.tolerance })},
	{"at", `a text, such as "peak"`, takeText(func(s *section) *string { return &s.at })},
	{"from", `a text, such as "step:3"`, takeText(func(s *section) *string { return &s.from })},
	{"to", `a text, such as "step:5"`, takeText(func(s *section) *string { return &s.to })},
}

func takeText(of func(s *section) *string) func(s *section, value any) bool {
	return func(s *section, value any) (ok bool) {
		*of(s), ok = value.(string)
		return ok
	}
}

func takeTexts(of func(s *section) *[]string) func(s *section, value any) bool {
	return func(s *section, value any) bool {
		list, ok := value.([]any)
		for _, v := range list {
			text, isText := v.(string)
			if !isText {
				return false
			}
			*of(s) = append(*of(s), text)
		}
		return ok
	}
}

// decodeBudget reads what is for all runs, and each run's own in the order of their names.
func decodeBudget(text []byte) (all section, runs []section, wrong *mistake) {
	var file map[string]any
	if err := toml.Unmarshal(text, &file); err != nil {
		return all, nil, &mistake{nil, err}
	}
	named := file["run"]
	delete(file, "run")
	if wrong = all.decode(file); wrong != nil {
		return all, nil, wrong
	}
	const like = "write a table for each run, such as [run.train]"
	tables, isTable := named.(map[string]any)
	if named != nil && !isTable {
		return all, nil, &mistake{keyPath{"run"}, fmt.Errorf("run is %s; %s", typeWords(named), like)}
	}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		run := section{name: name}
		table, isTable := tables[name].(map[string]any)
		switch {
		case name == "":
			return all, nil, &mistake{keyPath{"run", name}, errors.New("a run needs a name, such as [run.train]")}
		case !isTable:
			return all, nil, &mistake{keyPath{"run", name},
				fmt.Errorf("run.%s is %s; %s", name, typeWords(tables[name]), like)}
		}
		if wrong = run.decode(table); wrong != nil {
			return all, nil, wrong
		}
		runs = append(runs, run)
	}
	return all, runs, nil
}

// decode takes in the values of a section.
func (s *section) decode(values map[string]any) *mistake {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		i := slices.IndexFunc(budgetKeys, func(k budgetKey) bool { return k.name == name })
		if i < 0 {
			return &mistake{s.key(name), s.unknownKey(name)}
		}
		if k := &budgetKeys[i]; !k.take(s, values[name]) {
			what := "is " + typeWords(values[name])
			if list, isList := values[name].([]any); isList && len(list) > 0 {
				what = "has other values than texts"
			}
			return &mistake{s.key(name), fmt.Errorf("%s %s; write %s", name, what, k.like)}
		}
	}
	return nil
}

func (s *section) unknownKey(name string) error {
	if kind, _, _ := strings.Cut(name, ":"); kindOf(kind) != nil {
		return fmt.Errorf("unknown key %q; limits are in the table max, as max.%s", name, quotedKey(name))
	}
	var known []string
	for _, k := range budgetKeys {
		known = append(known, k.name)
	}
	if s.name == "" {
		known = append(known, "run")
	}
	return fmt.Errorf("unknown key %q; %s", name, choose(name, known, "choose from"))
}

// bareKey is one that TOML takes without quotes.
var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func quotedKey(name string) string {
	if bareKey.MatchString(name) {
		return name
	}
	return strconv.Quote(name)
}

// typeWords names the type of a value.
func typeWords(value any) string {
	switch value.(type) {
	case string:
		return "a text"
	case int64, float64:
		return "a number"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return "a date"
}

// Lines that are not TOML, as people write them.
var (
	bareSize    = regexp.MustCompile(`=\s*[0-9.]+\s*([KMGTkmgt]i?[Bb]?|%|B)`)
	bareSubject = regexp.MustCompile(`^\s*(max\.)?[a-z]+:[^"']*=`)
)

// syntaxWords says what is wrong with a line that is not TOML.
func syntaxWords(text []byte, line int, err *toml.DecodeError) string {
	lines := strings.Split(string(text), "\n")
	switch wrong := lines[min(max(line, 1), len(lines))-1]; {
	case bareSubject.MatchString(wrong):
		return `a key with a colon needs quotes, such as "tag:kv_cache" = "4GiB"`
	case bareSize.MatchString(wrong):
		return `a value with a unit needs quotes, such as "10GiB"`
	}
	return strings.TrimPrefix(err.Error(), "toml: ")
}

// placeOf is the line and the column of a path; of what is nowhere, that of the longest part of the path that is.
func placeOf(text []byte, path keyPath) unstable.Position {
	best, found := 0, unstable.Position{Line: 1, Column: 1}
	note := func(p *unstable.Parser, at keyPath, node *unstable.Node) {
		if len(at) > best && len(at) <= len(path) && slices.Equal(at, path[:len(at)]) && node.Raw.Length > 0 {
			best, found = len(at), p.Shape(node.Raw).Start
		}
	}
	var p unstable.Parser
	keys := func(at keyPath, list unstable.Iterator) keyPath {
		for list.Next() {
			at = append(slices.Clip(at), string(list.Node().Data))
			note(&p, at, list.Node())
		}
		return at
	}
	var inside func(at keyPath, value *unstable.Node)
	inside = func(at keyPath, value *unstable.Node) {
		list := value.Children()
		for i := 0; list.Next(); i++ {
			switch node := list.Node(); value.Kind {
			case unstable.InlineTable:
				inside(keys(at, node.Key()), node.Value())
			case unstable.Array:
				note(&p, append(slices.Clip(at), element(i)), node)
			}
		}
	}
	p.Reset(text)
	var table keyPath
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = keys(nil, e.Key())
		case unstable.KeyValue:
			inside(keys(table, e.Key()), e.Value())
		}
	}
	return found
}
