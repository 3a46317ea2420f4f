package rulefile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"memtrace/internal/rules"
	"memtrace/internal/safefile"
)

// maxFile bounds a file, in bytes.
const maxFile = 256 << 10

// Load reads a file. Errors name the file and, where something in it is wrong, the line.
func Load(path string) (*rules.Set, error) {
	text, err := safefile.Read(path, maxFile)
	if errors.Is(err, safefile.ErrTooLarge) {
		return nil, fmt.Errorf("%s: a file of rules may have %d bytes", path, maxFile)
	}
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// Parse reads the text of a file; path is used in errors and, without its folder and extension, as the name of a set
// without one.
func Parse(path string, text []byte) (*rules.Set, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s: a file of rules may have %d bytes", path, maxFile)
	}
	var whole map[string]any // what the walk below does not check: duplicate keys, values out of range
	if err := toml.Unmarshal(text, &whole); err != nil {
		line := 1
		var syntax *toml.DecodeError
		if errors.As(err, &syntax) {
			line, _ = syntax.Position()
		}
		return nil, fmt.Errorf("%s:%d: %s", path, line, strings.TrimPrefix(err.Error(), "toml: "))
	}
	r := reader{text: text, set: rules.Set{Name: stem(path)}}
	if err := r.read(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", path, r.line, err)
	}
	set, err := rules.New(r.set.Name, r.set.Doc, r.set.Mode, r.set.Rules)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return set, nil
}

// stem is a path's base name without its extension.
func stem(path string) string {
	name := path[strings.LastIndexByte(path, '/')+1:]
	return strings.TrimSuffix(name, ".toml")
}

// reader reads a file line by line, so that errors have a position.
type reader struct {
	text   []byte
	parser unstable.Parser
	set    rules.Set
	rule   *rules.Rule // being read; nil before the first
	begun  int         // line of its header
	line   int         // being read
}

const (
	topKeys  = "name, description, mode, and [[rule]] tables"
	noTables = "rules are [[rule]] tables, with double brackets"
)

func (r *reader) read() error {
	r.parser.Reset(r.text)
	for r.parser.NextExpression() {
		node := r.parser.Expression()
		if err := r.expression(node); err != nil {
			return err
		}
	}
	if err := r.parser.Error(); err != nil {
		return err
	}
	return r.endRule()
}

// at records the position of a node. A node without a position is on the line of the previous one.
func (r *reader) at(node *unstable.Node) {
	if node.Raw.Length > 0 {
		r.line = 1 + bytes.Count(r.text[:node.Raw.Offset], []byte{'\n'})
	}
}

func (r *reader) expression(node *unstable.Node) error {
	key := r.key(node)
	switch node.Kind {
	case unstable.ArrayTable:
		if key != "rule" {
			return fmt.Errorf("[[%s]]: the file has %s", key, topKeys)
		}
		line := r.line
		if err := r.endRule(); err != nil {
			return err
		}
		if len(r.set.Rules) == rules.MaxRules {
			return fmt.Errorf("more than %d rules", rules.MaxRules)
		}
		r.set.Rules = append(r.set.Rules, rules.Rule{})
		r.rule, r.begun, r.line = &r.set.Rules[len(r.set.Rules)-1], line, line
		return nil
	case unstable.Table:
		return fmt.Errorf("[%s]: %s", key, noTables)
	}
	if r.rule == nil {
		return r.header(key, node.Value())
	}
	return r.field(key, node.Value())
}

// endRule checks the rule that was read last.
func (r *reader) endRule() error {
	if r.rule == nil {
		return nil
	}
	if err := r.rule.Check(); err != nil {
		r.line = r.begun
		return err
	}
	return nil
}

// key returns a key, dotted where it has several parts.
func (r *reader) key(node *unstable.Node) string {
	var parts []string
	for it := node.Key(); it.Next(); {
		if len(parts) == 0 {
			r.at(it.Node())
		}
		parts = append(parts, string(it.Node().Data))
	}
	return strings.Join(parts, ".")
}

// header reads the part before the first rule.
func (r *reader) header(key string, value *unstable.Node) error {
	switch key {
	case "name", "description", "mode":
	default:
		return fmt.Errorf("there is no key %q here; the file has %s", key, topKeys)
	}
	text, err := r.textOf(key, value)
	if err != nil {
		return err
	}
	switch key {
	case "name":
		if text == "" || len(text) > rules.MaxText || strings.ContainsAny(text, "\n\r\t") {
			return fmt.Errorf("name %q: one short line", text)
		}
		r.set.Name = text
	case "description":
		r.set.Doc = text
	case "mode":
		r.set.Mode, err = rules.ParseMode(text)
	}
	return err
}

// field reads a key of a rule.
func (r *reader) field(key string, value *unstable.Node) (err error) {
	if key == "category" {
		r.rule.Category, err = r.textOf(key, value)
		return err
	}
	field, err := rules.ParseField(key)
	if err != nil {
		return fmt.Errorf("%w; also, a rule has its category", err)
	}
	c := rules.Condition{Field: field}
	if value.Kind != unstable.Array {
		err = r.alternative(&c, value)
	} else {
		for it := value.Children(); it.Next() && err == nil; {
			if it.Node().Kind != unstable.Comment {
				err = r.alternative(&c, it.Node())
			}
		}
	}
	if err != nil {
		return err
	}
	one := rules.Rule{Category: "-", Conditions: []rules.Condition{c}}
	if err := one.Check(); err != nil {
		return err
	}
	r.rule.Conditions = append(r.rule.Conditions, c)
	return nil
}

// alternative adds one value of a field to its condition.
func (r *reader) alternative(c *rules.Condition, value *unstable.Node) error {
	r.at(value)
	name := c.Field.String()
	if value.Kind == unstable.InlineTable && c.Field != rules.Size && rules.Words(c.Field) == nil {
		p, err := r.pattern(name, value)
		if err == nil {
			c.Patterns = append(c.Patterns, p)
		}
		return err
	}
	text, err := r.textOf(name, value)
	switch {
	case err != nil:
		return err
	case c.Field == rules.Size:
		bound, err := rules.ParseBound(text)
		if err != nil {
			return err
		}
		c.Bounds = append(c.Bounds, bound)
	case rules.Words(c.Field) != nil:
		c.Words = append(c.Words, text)
	default:
		c.Patterns = append(c.Patterns, rules.Pattern{Text: text})
	}
	return nil
}

// pattern reads { text = "..." } or { regex = "..." }, either with ignore_case.
func (r *reader) pattern(name string, table *unstable.Node) (p rules.Pattern, err error) {
	const allowed = "text or regex, and ignore_case"
	given := 0
	for it := table.Children(); it.Next(); {
		if it.Node().Kind != unstable.KeyValue {
			continue
		}
		key, value := r.key(it.Node()), it.Node().Value()
		switch key {
		case "text", "regex":
			given++
			p.Regex = key == "regex"
			if p.Text, err = r.textOf(name+"."+key, value); err != nil {
				return p, err
			}
		case "ignore_case":
			if value.Kind != unstable.Bool {
				return p, fmt.Errorf("%s.ignore_case: write true or false", name)
			}
			p.IgnoreCase = string(value.Data) == "true"
		default:
			return p, fmt.Errorf("%s: there is no key %q; choose from %s", name, key, allowed)
		}
	}
	if given != 1 {
		return p, fmt.Errorf("%s: needs one of text and regex", name)
	}
	return p, nil
}

func (r *reader) textOf(key string, value *unstable.Node) (string, error) {
	if value.Kind != unstable.String {
		return "", fmt.Errorf("%s: write a text in quotes, not a value of kind %s", key,
			strings.ToLower(value.Kind.String()))
	}
	return string(value.Data), nil
}
