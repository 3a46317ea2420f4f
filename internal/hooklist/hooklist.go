// Package hooklist compares the hook list with what CUDA has: the functions that its headers declare (testdata/headers)
// and those that the null CUDA exports. It also writes docs/hooks.md.
package hooklist

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

//go:generate go test -run TestPage -update

// Levels of functions.
const (
	Driver  = "driver"
	Runtime = "runtime"
)

// Function is one exported function of CUDA.
type Function struct {
	Level   string
	Symbol  string
	Base    string // what cuGetProcAddress calls it; "" for the runtime's
	Version int    // first CUDA version whose base has this ABI, 0 unknown
	Variant int    // 2: per-thread default stream
	In      []string
}

var hookRow = regexp.MustCompile(`(?m)^MT_(?:HOOK|CUSTOM)\(\d+, (DRIVER|RUNTIME), (\w+), "(\w*)", (\d+), (\d)`)

// Hooks reads hooks.def.
func Hooks(path string) ([]Function, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("hook list: %w", err)
	}
	var list []Function
	for _, m := range hookRow.FindAllStringSubmatch(string(text), -1) {
		version, _ := strconv.Atoi(m[4])
		variant, _ := strconv.Atoi(m[5])
		list = append(list, Function{Level: strings.ToLower(m[1]), Symbol: m[2], Base: m[3], Version: version,
			Variant: variant})
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("hook list: no rows in %s", path)
	}
	return list, nil
}

// Declared reads the table of the headers.
func Declared(path string) ([]Function, error) {
	var list []Function
	err := eachLine(path, func(line string) error {
		f := strings.Fields(line)
		if len(f) < 6 {
			return errors.New("fewer than 6 columns")
		}
		version, err := strconv.Atoi(f[3])
		if err != nil {
			return err
		}
		variant, err := strconv.Atoi(f[4])
		if err != nil {
			return err
		}
		list = append(list, Function{Level: f[0], Symbol: f[1], Base: strings.Trim(f[2], "-"), Version: version,
			Variant: variant, In: f[5:]})
		return nil
	})
	return list, err
}

// Class is what a function does to memory.
type Class string

// The classes.
const (
	Hook Class = "hook" // must be hooked
	Left Class = "left" // is not, for a reason
	None Class = "none" // leaves memory as it is
)

// Rule classifies functions by name.
type Rule struct {
	Class  Class
	Reason string
	match  *regexp.Regexp
	Used   bool
}

// Rules are tried in order.
type Rules []*Rule

// ReadRules reads the rules. In a pattern, NAME!v1 means the ABI without a version suffix only.
func ReadRules(path string) (Rules, error) {
	var rules Rules
	err := eachLine(path, func(line string) error {
		head, reason, ok := strings.Cut(line, " : ")
		class, pattern, found := strings.Cut(head, " ")
		if !ok || !found || (Class(class) != Hook && Class(class) != Left && Class(class) != None) {
			return errors.New("not a rule")
		}
		var parts []string
		for _, p := range split(strings.TrimSpace(pattern)) {
			if name, first := strings.CutSuffix(p, "!v1"); first {
				parts = append(parts, name)
			} else {
				parts = append(parts, "(?:"+p+`)(?:_v\d+)?(?:_pt[ds]s?z)?`)
			}
		}
		match, err := regexp.Compile("^(?:" + strings.Join(parts, "|") + ")$")
		if err != nil {
			return err
		}
		rules = append(rules, &Rule{Class: Class(class), Reason: reason, match: match})
		return nil
	})
	return rules, err
}

// split cuts a pattern at the bars outside parentheses.
func split(pattern string) (parts []string) {
	depth, from := 0, 0
	for i, c := range pattern {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && depth == 0:
			parts = append(parts, pattern[from:i])
			from = i + 1
		}
	}
	return append(parts, pattern[from:])
}

// Find returns the rule for a symbol, or nil.
func (r Rules) Find(symbol string) *Rule {
	for _, rule := range r {
		if rule.match.MatchString(symbol) {
			rule.Used = true
			return rule
		}
	}
	return nil
}

func eachLine(path string, take func(string) error) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("table: %w", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		if line := strings.TrimSpace(lines.Text()); line != "" && line[0] != '#' {
			if err := take(line); err != nil {
				return fmt.Errorf("%s, line %d: %w: %s", filepath.Base(path), n, err, line)
			}
		}
	}
	return lines.Err()
}
