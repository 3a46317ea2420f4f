package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// openers lists what opens a file by its name, by package.
var openers = map[string][]string{
	"os":      {"Open", "OpenFile", "ReadFile", "Create", "WriteFile", "DirFS"},
	"elf":     {"Open"},
	"unix":    {"Open", "Openat", "Openat2"},
	"syscall": {"Open"},
}

// opensItself lists the functions that may open files without package internal/safefile, and why.
var opensItself = map[string]string{
	"internal/safefile/open":             "is the one place",
	"internal/safefile/Remove":           "holds a folder",
	"internal/spool/FinalizeEnded":       "makes a new file, O_EXCL",
	"internal/spool/bootHash":            "/proc",
	"internal/spool/ReadStat":            "/proc",
	"internal/spool/maps":                "/proc",
	"internal/spool/someLocked":          "/proc",
	"interpose/filtered":                 "/proc",
	"interpose/newThinning":              "makes a new file, O_EXCL",
	"interpose/openByProc":               "the program's own stderr, by /proc",
	"interpose/versions":                 "/proc",
	"interpose/createOOMReport":          "makes a new file, O_EXCL",
	"internal/cli/addManSections":        "the pages that it has just written",
	"cmd/memtrace/completePIDs":          "/proc",
	"internal/attach/CommandOf":          "/proc",
	"internal/attach/factsOf":            "/proc",
	"internal/attach/roomObstacle":       "/proc",
	"internal/attach/mappedFile":         "/proc",
	"internal/control/connect":           "a folder alone, O_PATH",
	"internal/control/socketName":        "/proc",
	"internal/control/sweep":             "a folder alone, O_DIRECTORY, through no link",
	"internal/control/variable":          "/proc",
	"internal/attach/hasSignal":          "/proc",
	"internal/attach/explain":            "/proc",
	"internal/attach/lookAt":             "/proc",
	"internal/attach/readRegions":        "/proc",
	"internal/attach/readsFile":          "/proc",
	"internal/attach/symbols":            "what a process has mapped, by /proc",
	"cmd/memtrace/copy":                  "makes a new file, O_EXCL, in a folder of its own",
	"cmd/memtrace/appendSummary":         "adds to the file that GitHub's runner names",
	"internal/top/mappedSpools":          "/proc",
	"internal/top/namespacePIDs":         "/proc",
	"internal/top/describe":              "/proc",
	"internal/top/keyboard":              "/dev/tty",
	"internal/launch/inForeground":       "/dev/tty",
	"internal/cli/openDestination":       "makes a new file, O_EXCL, or writes to the device or pipe that was named",
	"internal/launch/writeManifestEntry": "makes a file in the folder of an enclosing run, through no link",
}

// Files that other users may have named or created were opened in a dozen places, eight of which hung for ever on a
// FIFO of that name. Now one place decides what may be opened, and nothing that ships opens files by itself.
func TestFilesAreOpenedInOnePlace(t *testing.T) {
	var found []string
	top := root(t)
	for name := range ours {
		for _, declaration := range declarations(t, filepath.Join(top, name)) {
			for _, call := range opening(declaration) {
				where := name + "/" + call.function
				found = append(found, where)
				if opensItself[where] == "" {
					t.Errorf(
						"%s calls %s: files are opened by internal/safefile, or the function is listed here with a reason", where, call.opener)
				}
			}
		}
	}
	for where := range opensItself {
		if !slices.Contains(found, where) {
			t.Errorf("%s is listed and opens nothing", where)
		}
	}
}

// declarations returns those of a package, without its tests.
func declarations(t *testing.T, folder string) (all []ast.Decl) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, file.Decls...)
	}
	return all
}

type openingCall struct{ function, opener string }

// opening lists the calls of openers in a declaration.
func opening(declaration ast.Decl) (calls []openingCall) {
	function := "(package)"
	if f, ok := declaration.(*ast.FuncDecl); ok {
		function = f.Name.Name
	}
	ast.Inspect(declaration, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if from, ok := selector.X.(*ast.Ident); ok && slices.Contains(openers[from.Name], selector.Sel.Name) {
			calls = append(calls, openingCall{function, fmt.Sprintf("%s.%s", from.Name, selector.Sel.Name)})
		}
		return true
	})
	return calls
}
