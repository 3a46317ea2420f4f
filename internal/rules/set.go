package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Limits of a set. They are far above those of real files, and bound the cost of a damaged or hostile file.
const (
	MaxRules    = 2000
	MaxText     = 1000 // bytes of a category's name or of a text in a pattern
	MaxPatterns = 200  // of one condition
)

// Mode is the treatment of a block that several rules match.
type Mode uint8

// The modes.
const (
	FirstMatch Mode = iota // the first rule decides; categories add up to what was sorted
	MultiMatch             // a block counts in every category that it matches; categories may add up to more
)

var modeNames = [...]string{"first-match", "multi-match"}

func (m Mode) String() string { return modeNames[m] }

// ParseMode is the inverse of String.
func ParseMode(text string) (Mode, error) {
	if i := slices.Index(modeNames[:], text); i >= 0 {
		return Mode(i), nil
	}
	return FirstMatch, fmt.Errorf("mode %q: choose from %s", text, strings.Join(modeNames[:], ", "))
}

// Field is the field that a condition tests.
type Field uint8

// The fields.
const (
	Any          Field = iota // tag, name, module, function, file, library or api
	Label                     // tag, name or module
	Tag                       // the tag path
	Name                      // what the framework calls the block: "parameter:h.0.weight"
	Module                    // the framework's module that allocated the block, or whose parameter it is
	Function                  // the functions of the call stack
	File                      // their source files
	SiteFunction              // the function of the site: the program's innermost own
	SiteFile                  // the source file of the site
	Library                   // the calling library, and the object files of the call stack
	API                       // the CUDA or framework call
	Kind                      // kind of memory, one of Words(Kind)
	Level                     // level of the account, one of Words(Level)
	Phase                     // phase of a training program, one of Words(Phase)
	Lifetime                  // one of Words(Lifetime)
	Size                      // bytes of the block

	fieldCount
)

// fieldsOf lists the fields that a combined field tests, in order.
var fieldsOf = map[Field][]Field{Any: {Tag, Name, Module, Function, File, Library, API}, Label: {Tag, Name, Module}}

var fieldNames = [fieldCount]string{"any", "label", "tag", "name", "module", "function", "file", "site.function",
	"site.file", "library", "api",
	"kind", "level", "phase", "lifetime", "size"}

func (f Field) String() string { return fieldNames[f] }

// ParseField is the inverse of String.
func ParseField(text string) (Field, error) {
	if i := slices.Index(fieldNames[:], text); i >= 0 {
		return Field(i), nil
	}
	return Any, fmt.Errorf("there is no field %q; choose from %s", text, strings.Join(fieldNames[:], ", "))
}

// Words lists all values of a field with a fixed set of values, nil for the others.
func Words(f Field) []string {
	switch f {
	case Kind:
		return []string{"device", "managed", "host", "registered", "async", "vmm", "array", "foreign", "graph",
			"address", "multicast", "imported", "module", "unknown"}
	case Level:
		return []string{"driver", "framework"}
	case Phase:
		return phaseNames[:]
	case Lifetime:
		return []string{Lasting, Temporary}
	}
	return nil
}

// The lifetimes: a temporary block is freed by the forward pass, the backward pass or the optimizer's step that made
// it; all others last.
const (
	Lasting   = "lasting"
	Temporary = "temporary"
)

// Pattern is one text to match.
type Pattern struct {
	Text       string
	Regex      bool // Text is a regular expression (RE2); otherwise it is matched literally
	IgnoreCase bool
	compiled   *regexp.Regexp // of a regular expression, and where case does not matter
}

func (p *Pattern) compile() (err error) {
	switch {
	case p.Text == "":
		return fmt.Errorf("an empty text would match everything; leave the condition out")
	case len(p.Text) > MaxText:
		return fmt.Errorf("a text of %d bytes; %d are allowed", len(p.Text), MaxText)
	}
	expression := p.Text
	if !p.Regex {
		expression = regexp.QuoteMeta(expression)
	}
	if p.IgnoreCase {
		expression = "(?i)" + expression
	}
	if p.Regex || p.IgnoreCase {
		if p.compiled, err = regexp.Compile(expression); err != nil {
			return fmt.Errorf("regex %q: %w", p.Text, err)
		}
	}
	return nil
}

func (p *Pattern) matches(text string) bool {
	if p.compiled != nil {
		return p.compiled.MatchString(text)
	}
	return strings.Contains(text, p.Text)
}

// Condition tests one field. Texts match anywhere in the field, and one of the Patterns is enough; the fields Kind,
// Level, Phase and Lifetime equal one of the Words; for Size all Bounds hold.
type Condition struct {
	Field    Field
	Patterns []Pattern
	Words    []string
	Bounds   []Bound
}

func (c *Condition) check() error {
	words := Words(c.Field)
	switch {
	case c.Field == Size && len(c.Bounds) == 0, words != nil && len(c.Words) == 0, c.Field != Size && words == nil &&
		len(c.Patterns) == 0:
		return fmt.Errorf("says nothing")
	case len(c.Patterns)+len(c.Words)+len(c.Bounds) > MaxPatterns:
		return fmt.Errorf("has %d alternatives; %d are allowed", len(c.Patterns)+len(c.Words)+len(c.Bounds),
			MaxPatterns)
	}
	for _, word := range c.Words {
		if !slices.Contains(words, word) {
			return fmt.Errorf("there is no %s %q; choose from %s", c.Field, word, strings.Join(words, ", "))
		}
	}
	for i := range c.Patterns {
		if err := c.Patterns[i].compile(); err != nil {
			return err
		}
	}
	return nil
}

// Rule gives a category to what fulfils all of its conditions.
type Rule struct {
	Category   string // {library}, {function}, {file}, {tag}, {api} and {module} are replaced by the block's own
	Conditions []Condition
}

// Placeholders of a category's name.
var placeholders = []string{"{library}", "{function}", "{file}", "{tag}", "{api}", "{module}"}

// Check reports an invalid rule, and compiles its patterns.
func (r *Rule) Check() error {
	switch {
	case strings.TrimSpace(r.Category) == "":
		return fmt.Errorf("a rule needs a category")
	case len(r.Category) > MaxText:
		return fmt.Errorf("a category's name of %d bytes; %d are allowed", len(r.Category), MaxText)
	case r.Category == Others:
		return fmt.Errorf("category %q is kept for what no rule matches", Others)
	case len(r.Conditions) == 0:
		return fmt.Errorf("category %q: a rule needs a condition; choose from %s", r.Category,
			strings.Join(fieldNames[:], ", "))
	}
	rest := r.Category
	for _, p := range placeholders {
		rest = strings.ReplaceAll(rest, p, "")
	}
	if strings.ContainsAny(rest, "{}") {
		return fmt.Errorf("category %q: braces stand only in %s", r.Category, strings.Join(placeholders, ", "))
	}
	for i := range r.Conditions {
		if err := r.Conditions[i].check(); err != nil {
			return fmt.Errorf("%s: %w", r.Conditions[i].Field, err)
		}
	}
	return nil
}

// Others is the category of blocks without a matching rule.
const Others = "Others"

// Set is an ordered list of rules under a name.
type Set struct {
	Name  string
	Doc   string // one line about it
	Mode  Mode
	Rules []Rule
}

// New checks a set.
func New(name, doc string, mode Mode, list []Rule) (*Set, error) {
	switch {
	case len(list) == 0:
		return nil, fmt.Errorf("a set needs a rule")
	case len(list) > MaxRules:
		return nil, fmt.Errorf("%d rules; %d are allowed", len(list), MaxRules)
	}
	for i := range list {
		if err := list[i].Check(); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return &Set{Name: name, Doc: doc, Mode: mode, Rules: list}, nil
}

// Uses reports whether a rule, or the name of a category, uses a field. Any and Label count as the fields that they
// include.
func (s *Set) Uses(f Field) bool {
	for i := range s.Rules {
		r := &s.Rules[i]
		if r.uses(f) || slices.Contains(fieldsOf[Any], f) && r.uses(Any) || slices.Contains(fieldsOf[Label], f) &&
			r.uses(Label) {
			return true
		}
		for n, field := range []Field{Library, SiteFunction, SiteFile, Tag, API, Module} {
			if field == f && strings.Contains(r.Category, placeholders[n]) {
				return true
			}
		}
	}
	return false
}

func (r *Rule) uses(f Field) bool {
	return slices.ContainsFunc(r.Conditions, func(c Condition) bool { return c.Field == f })
}

// Boundaries lists, in order, the sizes at which a condition's result may change: blocks of sizes between the same two
// boundaries have the same category.
func (s *Set) Boundaries() []uint64 {
	var list []uint64
	for i := range s.Rules {
		for _, c := range s.Rules[i].Conditions {
			for _, b := range c.Bounds {
				list = append(list, b.boundaries()...)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
