package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// starts reports whether a Go file starts goroutines or calls what starts them: a go statement, WaitGroup.Go and its
// like, or a handler of requests.
func starts(name string, text []byte) (found bool, _ error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
	if err != nil {
		return false, err
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			call, ok := n.Fun.(*ast.SelectorExpr)
			found = found || ok && (call.Sel.Name == "Go" || call.Sel.Name == "AfterFunc")
		case *ast.FuncDecl:
			found = found || n.Name.Name == "ServeHTTP"
		}
		return true
	})
	return found, nil
}

// A package that starts goroutines and is not tested under the race detector is tested by luck. Each row of the list
// is a package, an expression that some of its tests match, and why it is there.
func TestRacePackages(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "scripts", "race-packages.txt"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		row, reason, _ := strings.Cut(line, "#")
		if row = strings.TrimSpace(row); row == "" {
			continue
		}
		fields := append(strings.Fields(row), "")
		for _, tests := range strings.Split(fields[1], "|") {
			if tests, _, _ = strings.Cut(tests, "/"); !hasTest(t, fields[0], tests) || strings.TrimSpace(reason) == "" {
				t.Errorf("scripts/race-packages.txt: %s has no test %q, or no reason", fields[0], tests)
			}
		}
		listed[fields[0]] = true
	}
	eachSource(t, func(name, extension string, text []byte) error {
		found, err := false, error(nil)
		if extension == ".go" && production(name) {
			found, err = starts(name, text)
		}
		if folder := "./" + filepath.ToSlash(filepath.Dir(name)); found && !listed[folder] {
			t.Errorf("%s starts goroutines: list %s in scripts/race-packages.txt", name, folder)
		}
		return err
	})
}

// hasTest reports whether a package has a test whose name matches.
func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	test := regexp.MustCompile(`(?m)^func (Test|Fuzz)\w*` + name)
	files, err := filepath.Glob(filepath.Join(root(t), folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && test.Match(text)
	})
}
