package guest

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"memtrace/internal/textform"
)

// Encoded returns the trace that a text describes.
func Encoded(tb testing.TB, text string) []byte {
	tb.Helper()
	var file bytes.Buffer
	if err := textform.Encode(&file, strings.NewReader(text)); err != nil {
		tb.Fatal(err)
	}
	return file.Bytes()
}

// ReportTraces returns the traces that have golden reports, by the golden file's name and the section's: "trace", or
// "base" and "new" of two that are compared.
func ReportTraces(tb testing.TB) map[string][]byte {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join(Root(), "internal/render/testdata/*.txtar"))
	if err != nil || len(paths) < 10 {
		tb.Fatalf("%d golden reports: %v", len(paths), err)
	}
	all := make(map[string][]byte)
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		for _, f := range archive.Files {
			if f.Name == "trace" || f.Name == "base" || f.Name == "new" {
				all[filepath.Base(path)+" "+f.Name] = Encoded(tb, string(f.Data))
			}
		}
	}
	return all
}
