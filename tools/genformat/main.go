// Command genformat writes the tables of docs/format.md, from the event table that the reader and the writer use,
// between the markers of that file. It is run by go generate ./trace; a test fails while the file is stale.
package main

import (
	"flag"
	"fmt"
	"os"
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
	lines := []string{"| kind | name |", "|---|---|"}
	for kind := section.Info; kind.String() != "unknown"; kind++ {
		lines = append(lines, fmt.Sprintf("| %d | %s |", kind, kind))
	}
	return lines
}

func encodingLines() []string {
	lines := []string{"| number | name | how values become bytes |", "|---|---|---|"}
	for _, e := range trace.EncodingSpecs {
		lines = append(lines, fmt.Sprintf("| %d | %s | %s |", e.Encoding, e.Encoding, e.Doc))
	}
	return lines
}

func fieldLines() []string {
	lines := []string{"| field | name | encoding | signed | unit | meaning |", "|---|---|---|---|---|---|"}
	for _, f := range trace.FieldSpecs {
		signed := ""
		if f.Signed {
			signed = "yes"
		}
		lines = append(lines, fmt.Sprintf("| %d | %s | %s | %s | %s | %s |", f.Field, f.Name, f.Encoding, signed,
			f.Unit, f.Doc))
	}
	return lines
}

func kindLines() []string {
	lines := []string{"| kind | name | since version | fields | meaning |", "|---|---|---|---|---|"}
	for _, k := range trace.EventSpecs {
		var names []string
		for _, f := range k.Fields {
			names = append(names, trace.FieldSpecs[f].Name)
		}
		lines = append(lines, fmt.Sprintf("| %d | %s | %d | %s | %s |", k.Kind, k.Name, k.Since,
			strings.Join(names, " "), k.Doc))
	}
	return lines
}
