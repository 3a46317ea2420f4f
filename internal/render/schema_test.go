package render

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
)

// published are the types of JSON output, by their path: the events and retries are those of the file written next to a
// trace when memory runs out.
var published = map[string]reflect.Type{
	"brief":       reflect.TypeFor[briefReport](),
	"diff":        reflect.TypeFor[diff.Diff](),
	"oom.events":  reflect.TypeFor[report.OOMReport](),
	"oom.retries": reflect.TypeFor[report.OOMRetries](),
	"report":      reflect.TypeFor[Document](),
}

// fieldKinds adds the kind of every field that a type's JSON can hold, by its path. Arrays add nothing to a path, the
// keys of a map are *, and a type inside itself ends it.
func fieldKinds(kinds map[string]string, t reflect.Type, path string, above ...reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		fieldKinds(kinds, t.Elem(), path, above...)
	case reflect.Map:
		kinds[path+".*"] = kindOf(t.Elem())
		fieldKinds(kinds, t.Elem(), path+".*", above...)
	case reflect.Struct:
		if slices.Contains(above, t) {
			return
		}
		above = append(slices.Clip(above), t)
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Anonymous && name == "":
				fieldKinds(kinds, f.Type, path, above...)
			case name != "-" && f.IsExported():
				kinds[path+"."+name] = kindOf(f.Type)
				fieldKinds(kinds, f.Type, path+"."+name, above...)
			}
		}
	}
}

// kindOf is the JSON type of a Go type.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.Slice:
		return "[]" + kindOf(t.Elem())
	case reflect.Map, reflect.Struct:
		return "object"
	case reflect.Bool, reflect.String:
		return t.Kind().String()
	}
	return "number"
}

// TestSchemaPaths: no field of JSON output is renamed, moved, removed or changed in type. Decoding a report into the
// product's own types, as the end-to-end tests do, would not detect that. testdata/schema.txt has a line for each
// object with its fields.
func TestSchemaPaths(t *testing.T) {
	const file = "testdata/schema.txt"
	got, objects := make(map[string]string), make(map[string][]string)
	for root, typ := range published {
		fieldKinds(got, typ, root)
	}
	for _, path := range slices.Sorted(maps.Keys(got)) {
		at := strings.LastIndexByte(path, '.')
		objects[path[:at]] = append(objects[path[:at]], path[at+1:]+" "+got[path])
	}
	if *update {
		var text strings.Builder
		for _, object := range slices.Sorted(maps.Keys(objects)) {
			fmt.Fprintf(&text, "%s: %s\n", object, strings.Join(objects[object], ", "))
		}
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		object, fields, _ := strings.Cut(strings.TrimSpace(line), ": ")
		for field := range strings.SplitSeq(fields, ", ") {
			name, kind, _ := strings.Cut(field, " ")
			want[object+"."+name] = kind
		}
	}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got[path] != want[path] {
			t.Errorf("%s was published as %s and is %s: fields are only added", path, want[path],
				cmp.Or(got[path], "gone"))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(got)) {
		if want[path] == "" {
			t.Errorf("field %s is new: describe it in the documents, and run the test with -update", path)
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
	for _, part := range []struct{ name, text string }{{"report", ofReport}, {"diff", ofDiff}} {
		names, kinds := map[string]bool{"schema": true}, make(map[string]string)
		fieldKinds(kinds, published[part.name], part.name)
		for path := range kinds {
			names[path[strings.LastIndexByte(path, '.')+1:]] = true
		}
		delete(names, "*")
		if names[""] {
			t.Errorf("%s: a field has no JSON name", part.name)
		}
		documented := make(map[string]bool)
		for _, m := range quoted.FindAllStringSubmatch(part.text, -1) {
			documented[m[1]] = true
		}
		for name := range names {
			// The parts of a report in a diff are described there.
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
