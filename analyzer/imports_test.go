package analyzer

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestImports keeps the arrows between packages: analyzer knows trace, symbol and cuda, render knows analyzer besides, and neither needs cgo, a logger or the network.
func TestImports(t *testing.T) {
	allowed := map[string][]string{
		".":      {"memtrace/analyzer/rules", "memtrace/analyzer/symbol", "memtrace/internal/offheap", "memtrace/trace", "memtrace/cuda"},
		"render": {"memtrace/analyzer/rules", "memtrace/analyzer/symbol", "memtrace/analyzer", "memtrace/internal/visible", "github.com/clipperhouse/displaywidth"},
	}
	forbidden := map[string]bool{"C": true, "log": true, "log/slog": true, "net": true, "net/http": true, "os/exec": true, "unsafe": true}
	for dir, mine := range allowed {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, name := range importsOf(t, file) {
				standard := !strings.Contains(strings.Split(name, "/")[0], ".") && !strings.HasPrefix(name, "memtrace/")
				if forbidden[name] || !standard && !slices.Contains(mine, name) {
					t.Errorf("%s imports %s", file, name)
				}
			}
		}
	}
}

func importsOf(t *testing.T, file string) []string {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, spec := range f.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, name)
	}
	return list
}
