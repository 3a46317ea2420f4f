package importer

import (
	"regexp"
	"slices"
	"strings"
)

var (
	comments   = regexp.MustCompile(`--[^\n]*|/\*(?s:.*?)\*/`)
	primaryKey = regexp.MustCompile(`(?i)^\s*INTEGER\b.*\bPRIMARY\s+KEY\b`)
	withoutID  = regexp.MustCompile(`(?i)\)\s*WITHOUT\s+ROWID`)
)

// constraints are the keywords that begin a table constraint, not a column, in CREATE TABLE.
var constraints = []string{"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"}

// parseTable reads the columns of a CREATE TABLE statement, nil for what it cannot read.
func parseTable(text string) *sqliteTable {
	text = comments.ReplaceAllString(text, " ")
	begin, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if begin < 0 || end < begin || withoutID.MatchString(text) {
		return nil
	}
	t := &sqliteTable{rowID: -1}
	for _, part := range splitList(text[begin+1 : end]) {
		name, rest := columnName(strings.TrimSpace(part))
		if slices.Contains(constraints, strings.ToUpper(name)) {
			continue
		}
		if primaryKey.MatchString(rest) {
			t.rowID = len(t.columns)
		}
		t.columns = append(t.columns, name)
	}
	return t
}

// splitList splits a list at the commas outside of brackets and quotes.
func splitList(text string) (parts []string) {
	depth, begin, quote := 0, 0, byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"', c == '\'', c == '`':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, text[begin:i])
			begin = i + 1
		}
	}
	return append(parts, text[begin:])
}

// columnName cuts a name, which may be quoted, from what follows.
func columnName(text string) (name, rest string) {
	if text == "" {
		return "", ""
	}
	if closing, quoted := map[byte]string{'"': `"`, '`': "`", '[': "]", '\'': "'"}[text[0]]; quoted {
		name, rest, _ = strings.Cut(text[1:], closing)
		return name, rest
	}
	at := strings.IndexAny(text, " \t\r\n(")
	if at < 0 {
		return text, ""
	}
	return text[:at], text[at:]
}
