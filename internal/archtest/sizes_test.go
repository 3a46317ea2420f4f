package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What a reader takes in at once: lines of a file, lines of a function, methods of a type.
const (
	linesOfFile     = 400
	linesOfFunction = 60
	methodsOfType   = 40
)

// large lists what is larger and why: "folder", "folder/file", "folder/file:function" or "folder.Type". A row whose
// subject has shrunk fails the test, so that the list only gets shorter.
var large = map[string]string{
	"trace/dictionary.go:entryDecoder.entry": "a case for each kind of entry: stays while there is one format",
	"trace/field.go:scatter":                 "a case for each column, the reader's hottest loop: stays",
	"trace/field.go:scatterMore":             "a case for each column: stays",
	"internal/spool/record.go:Spool.decode":  "a line for each field of a record: stays",
	"cuda/nvml/symbols_list.h":               "a list of names, one a line: stays",
}

// production reports whether a file is part of what ships or of its tools: not a test, a generated file, or data of
// tests.
func production(path string) bool {
	for _, part := range []string{"testdata/", "/ctest/", "/test/", "internal/e2e/", "internal/hostile/", "build/"} {
		if strings.Contains("/"+path, "/"+strings.TrimPrefix(part, "/")) {
			return false
		}
	}
	return !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, "_gen.go")
}

// eachSource calls look with every file of Go and C in the tree: its name from the root, its extension and its text.
func eachSource(t *testing.T, look func(name, extension string, text []byte) error) {
	t.Helper()
	eachFile(t, []string{".go", ".c", ".h"}, look)
}

// eachFile is eachSource for files with other extensions.
func eachFile(t *testing.T, extensions []string, look func(name, extension string, text []byte) error) {
	t.Helper()
	top := root(t)
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && strings.HasPrefix(entry.Name(), ".") || name == "build" || name == "dist" {
				return fs.SkipDir
			}
			return nil
		}
		extension := filepath.Ext(name)
		if !slices.Contains(extensions, extension) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return look(filepath.ToSlash(name), extension, text)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSizes: files, functions and folders are of a size to be read at once, or are in the list.
func TestSizes(t *testing.T) {
	folders, methods, found := map[string]int{}, map[string]int{}, map[string]string{}
	eachSource(t, func(name, extension string, text []byte) error {
		if !production(name) {
			return nil
		}
		folders[filepath.ToSlash(filepath.Dir(name))]++
		return sizesOf(name, extension, text, found, methods)
	})
	for of, count := range methods {
		if count > methodsOfType {
			found[of] = fmt.Sprintf("%d methods, %d are the most", count, methodsOfType)
		}
	}
	for folder, files := range folders {
		if files > filesOfRoom {
			found[folder] = fmt.Sprintf("%d files, %d are the most", files, filesOfRoom)
		}
	}
	if len(folders) < 25 {
		t.Fatalf("%d folders are too few to believe", len(folders))
	}
	for what, size := range found {
		if _, listed := large[what]; !listed {
			t.Errorf("%s has %s", what, size)
		}
	}
	for what := range large {
		if found[what] == "" {
			t.Errorf("%s is of a good size now: take it from the list", what)
		}
	}
}

// sizesOf adds to found what is too large in a file, and to methods those of its types.
func sizesOf(name, extension string, text []byte, found map[string]string, methods map[string]int) error {
	if lines := strings.Count(string(text), "\n"); lines > linesOfFile {
		found[name] = fmt.Sprintf("%d lines, %d are the most", lines, linesOfFile)
	}
	functions := functionsOfC(string(text))
	if extension == ".go" {
		var err error
		if functions, err = functionsOfGo(name, text); err != nil {
			return err
		}
	}
	for function, lines := range functions {
		if of, _, ok := strings.Cut(function, "."); ok {
			methods[filepath.ToSlash(filepath.Dir(name))+"."+of]++
		}
		if lines > linesOfFunction {
			found[name+":"+function] = fmt.Sprintf("%d lines, %d are the most", lines, linesOfFunction)
		}
	}
	return nil
}

// functionsOfGo returns the lines of each function's body, with its first and its last line. Methods are Type.method.
func functionsOfGo(name string, text []byte) (map[string]int, error) {
	set, lines := token.NewFileSet(), map[string]int{}
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && function.Body != nil {
			key := function.Name.Name
			if function.Recv != nil {
				key = receiver(function.Recv.List[0].Type) + "." + key
			}
			lines[key] = set.Position(function.End()).Line - set.Position(function.Pos()).Line + 1
		}
	}
	return lines, nil
}

// receiver returns the name of a method's type.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return "?"
}

// cFunction matches the first line of a function as our C has it: it begins at the margin and ends in the brace of its
// body.
var cFunction = regexp.MustCompile(`^[a-z_].*?\b(\w+)\(.*\)[^;=]*\{$`)

// functionsOfC returns the lines of each function that has more than one.
func functionsOfC(text string) map[string]int {
	lines, name, first := map[string]int{}, "", 0
	for i, line := range strings.Split(text, "\n") {
		if match := cFunction.FindStringSubmatch(line); match != nil {
			name, first = match[1], i
		} else if line == "}" && name != "" {
			lines[name], name = i-first+1, ""
		}
	}
	return lines
}
