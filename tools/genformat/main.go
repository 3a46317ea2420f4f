// Command genformat writes the tables of docs/format.md, from the event table that the reader and the writer use,
// between the markers of that file. It is run by go generate ./trace; a test fails while the file is stale.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"memtrace/internal/section"
	"memtrace/trace"
)

func main() {
	path := flag.String("doc", "docs/format.md", "file to refresh")
	flag.Parse()
	if err := refreshFile(*path); err != nil {
		fmt.Fprintln(os.Stderr, "genformat:", err)
		os.Exit(1)
	}
}

func refreshFile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	fresh, err := refresh(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if fresh == string(text) {
		return nil
	}
	if err := os.WriteFile(path, []byte(fresh), 0o644); err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}

// tables are the generated parts by the name in their markers.
var tables = []struct {
	name  string
	lines func() []string
}{
	{"limits", limitLines},
	{"sections", sectionLines},
	{"encodings", encodingLines},
	{"fields", fieldLines},
	{"kinds", kindLines},
}

// refresh replaces what is between the markers of each table.
func refresh(doc string) (string, error) {
	for _, t := range tables {
		begin, end := "<!-- generated:"+t.name+" -->\n", "<!-- /generated:"+t.name+" -->\n"
		before, rest, ok := strings.Cut(doc, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			return "", fmt.Errorf("markers of the table %q are missing", t.name)
		}
		doc = before + begin + strings.Join(t.lines(), "\n") + "\n" + end + after
	}
	return doc, nil
}

func limitLines() []string {
	return []string{
		"| limit | value |", "|---|---|",
		fmt.Sprintf("| format version written | %d |", trace.FormatVersion),
		fmt.Sprintf("| oldest format version read | %d |", trace.OldestVersion),
		fmt.Sprintf("| events in a block | %d |", trace.MaxBlockEvents),
		fmt.Sprintf("| bytes of a section, stored and uncompressed | %d |", section.MaxBytes),
		fmt.Sprintf("| bytes of a dictionary string, path or name | %d |", trace.MaxString),
		fmt.Sprintf("| frames of a stack | %d |", trace.MaxFrames),
		fmt.Sprintf("| bytes of a Python line table | %d |", trace.MaxLineTable),
		fmt.Sprintf("| functions that one code address stands for | %d |", trace.MaxSymbolFrames),
	}
}

func sectionLines() []string {
	var kinds []string
	for kind := section.Info; kind.String() != "unknown"; kind++ {
		kinds = append(kinds, fmt.Sprintf("%d %s", kind, kind))
	}
	return []string{"Kinds: " + strings.Join(kinds, ", ") + "."}
}

func encodingLines() []string {
	lines := []string{"| number | name | how values become bytes |", "|---|---|---|"}
	for _, e := range trace.EncodingSpecs {
		lines = append(lines, fmt.Sprintf("| %d | %s | %s |", e.Encoding, e.Encoding, e.Doc))
	}
	return lines
}

func fieldLines() []string {
	lines := []string{"| field | name | encoding | unit | meaning |", "|---|---|---|---|---|"}
	for _, f := range trace.FieldSpecs {
		encoding := f.Encoding.String()
		if f.Signed {
			encoding += ", signed"
		}
		lines = append(lines, fmt.Sprintf("| %d | %s | %s | %s | %s |", f.Field, f.Name, encoding, f.Unit, f.Doc))
	}
	return lines
}

// kindLines says once which fields all kinds have, and of a kind with the fields of an earlier one only its name.
func kindLines() []string {
	kinds := trace.EventSpecs[1:]
	var common []trace.Field
	for _, f := range kinds[0].Fields {
		if !slices.ContainsFunc(kinds, func(k trace.EventSpec) bool { return !slices.Contains(k.Fields, f) }) {
			common = append(common, f)
		}
	}
	lines := []string{
		"Kind 0 is never written. All others have the fields " + fieldNames(common) + ", and:", "",
		"| kind | name | fields | meaning |", "|---|---|---|---|",
	}
	for i, k := range kinds {
		fields := fieldNames(slices.DeleteFunc(slices.Clone(k.Fields), func(f trace.Field) bool {
			return slices.Contains(common, f)
		}))
		same := slices.IndexFunc(kinds[:i], func(e trace.EventSpec) bool { return slices.Equal(e.Fields, k.Fields) })
		if same >= 0 && len(k.Fields) > len(common)+1 {
			fields = "as " + kinds[same].Name
		}
		doc := k.Doc
		if k.Since > trace.OldestVersion {
			doc += fmt.Sprintf(" (since version %d)", k.Since)
		}
		lines = append(lines, fmt.Sprintf("| %d | %s | %s | %s |", k.Kind, k.Name, fields, doc))
	}
	return lines
}

func fieldNames(fields []trace.Field) string {
	var names []string
	for _, f := range fields {
		names = append(names, trace.FieldSpecs[f].Name)
	}
	return strings.Join(names, " ")
}
