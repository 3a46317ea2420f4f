package render

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"memtrace/analyzer/diff"
)

// jsonNames adds the names of every field that a type's JSON can hold.
func jsonNames(names map[string]bool, t reflect.Type, seen map[reflect.Type]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		jsonNames(names, t.Elem(), seen)
	case reflect.Struct:
		if seen[t] {
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			switch f := t.Field(i); {
			case f.Anonymous && name == "":
				jsonNames(names, f.Type, seen)
			case name != "-" && f.IsExported():
				names[name] = true
				jsonNames(names, t.Field(i).Type, seen)
			}
		}
	}
}

// TestSchemaIsDocumented compares docs/report-json.md with the types: every field must be there, in backquotes, in the
// part about its object; and the first column of its tables must not hold a field that no longer exists.
func TestSchemaIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/report-json.md")
	if err != nil {
		t.Fatal(err)
	}
	ofReport, ofDiff, ok := strings.Cut(string(text), "## Diff:")
	if !ok {
		t.Fatal("no part about diffs")
	}
	quoted := regexp.MustCompile("`([a-z_]+)`")
	firstColumn := regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|")
	for _, part := range []struct {
		name, text string
		value      any
	}{{"report", ofReport, jsonReport{}}, {"diff", ofDiff, diff.Diff{}}} {
		names := map[string]bool{"schema": true}
		jsonNames(names, reflect.TypeOf(part.value), make(map[reflect.Type]bool))
		if names[""] {
			t.Errorf("%s: a field has no JSON name", part.name)
		}
		documented := make(map[string]bool)
		for _, m := range quoted.FindAllStringSubmatch(part.text, -1) {
			documented[m[1]] = true
		}
		for name := range names {
			// What a diff takes over from a report is described there.
			if !documented[name] && !(part.name == "diff" && strings.Contains(ofReport, "`"+name+"`")) {
				t.Errorf("%s: field %q is not in docs/report-json.md", part.name, name)
			}
		}
		for _, m := range firstColumn.FindAllStringSubmatch(part.text, -1) {
			for _, name := range quoted.FindAllStringSubmatch(m[1], -1) {
				if !names[name[1]] {
					t.Errorf("%s: docs/report-json.md lists %q, which is no field", part.name, name[1])
				}
			}
		}
	}
	for _, schema := range []string{ReportSchema, DiffSchema} {
		if !strings.Contains(string(text), "`"+schema+"`") {
			t.Errorf("schema %s is not documented", schema)
		}
	}
}
