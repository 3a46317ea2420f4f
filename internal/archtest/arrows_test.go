// Package archtest keeps the edges between packages: who may import whom, within the module and outside it.
package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const module = "memtrace/"

// ours lists, for every package that ships, which packages of the module it may import directly. Packages below
// internal/ that are not listed are tools and helpers of the tests: they may import what they like but the two mains,
// and nothing that ships may import them.
var ours = map[string][]string{
	"cuda":             {},
	"cuda/nvml":        {},
	"trace/section":    {},
	"trace":            {"cuda", "trace/section"},
	"trace/textform":   {"cuda", "trace"},
	"trace/importer":   {"cuda", "trace"},
	"internal/rewrite": {"analyzer/heap", "cuda", "internal/offheap", "trace"},
	"trace/spool":      {"cuda", "internal/safefile", "trace", "trace/section"},
	"analyzer/fold":    {},
	"analyzer/rules":   {},
	"analyzer/symbol":  {"internal/safefile", "trace"},
	"analyzer/report":  {"analyzer/fold", "analyzer/rules", "trace"},
	"analyzer/cause": {
		"analyzer/callstack", "analyzer/fold", "analyzer/heap", "analyzer/oom", "analyzer/profile",
		"analyzer/report", "analyzer/rules", "trace",
	},
	"analyzer/heap":      {"analyzer/report", "cuda", "internal/offheap", "trace"},
	"analyzer/callstack": {"analyzer/heap", "analyzer/report", "analyzer/rules", "analyzer/symbol", "trace"},
	"analyzer/profile": {
		"analyzer/callstack", "analyzer/heap", "analyzer/report", "analyzer/rules", "analyzer/symbol", "cuda",
		"trace",
	},
	"analyzer/device": {
		"analyzer/callstack", "analyzer/heap", "analyzer/profile", "analyzer/report", "cuda", "trace",
	},
	"analyzer/training": {
		"analyzer/callstack", "analyzer/heap", "analyzer/profile", "analyzer/report", "analyzer/rules", "cuda",
		"internal/offheap", "trace",
	},
	"analyzer/moment":        {"analyzer/device", "analyzer/heap", "analyzer/profile", "analyzer/report", "trace"},
	"analyzer/render/layout": {"analyzer/report", "analyzer/rules", "internal/sanitize"},
	"analyzer/oom": {
		"analyzer/callstack", "analyzer/device", "analyzer/heap", "analyzer/profile", "analyzer/report",
		"analyzer/rules", "cuda", "trace",
	},
	"analyzer": {
		"analyzer/callstack", "analyzer/cause", "analyzer/device", "analyzer/heap", "analyzer/moment",
		"analyzer/oom", "analyzer/profile", "analyzer/report", "analyzer/symbol", "analyzer/training", "cuda",
		"internal/offheap", "trace",
	},
	"analyzer/diff":           {"analyzer/callstack", "analyzer/fold", "analyzer/profile", "analyzer/report"},
	"analyzer/rules/rulefile": {"analyzer/rules", "internal/safefile"},
	"analyzer/render": {
		"analyzer/callstack", "analyzer/cause", "analyzer/diff", "analyzer/fold", "analyzer/render/layout",
		"analyzer/render/oomtext", "analyzer/report", "analyzer/rules", "internal/sanitize",
	},
	"analyzer/export": {
		"analyzer", "analyzer/callstack", "analyzer/heap", "analyzer/moment", "analyzer/render/layout",
		"analyzer/report", "analyzer/symbol", "cuda", "internal/sanitize", "trace",
	},
	"internal/page": {
		"analyzer/diff", "analyzer/render", "analyzer/render/layout", "analyzer/render/oomtext",
		"analyzer/report", "internal/loopback", "internal/sanitize",
	},
	"analyzer/plot": {"analyzer/render/layout", "analyzer/report", "analyzer/rules", "internal/sanitize"},
	"cmd/memtrace": {
		"analyzer", "analyzer/diff", "analyzer/export", "analyzer/moment", "analyzer/plot", "analyzer/profile",
		"analyzer/render", "analyzer/render/layout", "analyzer/report", "analyzer/rules/rulefile",
		"analyzer/symbol", "internal/attach", "internal/cli", "internal/control", "internal/exports",
		"internal/launch", "internal/page", "internal/rewrite", "internal/safefile", "internal/sanitize",
		"internal/top", "internal/tracefile", "internal/version", "trace", "trace/importer", "trace/spool",
		"trace/textform",
	},
	"interpose": {
		"analyzer/callstack", "analyzer/oom", "analyzer/render/layout", "analyzer/render/oomtext",
		"analyzer/report", "analyzer/symbol", "cuda", "internal/rewrite", "internal/safefile",
		"internal/sanitize", "internal/version", "trace", "trace/spool",
	},
	"internal/top": {
		"analyzer", "analyzer/moment", "analyzer/profile", "analyzer/render/layout", "analyzer/report",
		"analyzer/rules", "analyzer/rules/rulefile", "analyzer/symbol", "cuda/nvml", "internal/control",
		"internal/metrics", "internal/sanitize", "internal/version", "trace/spool",
	},
	"analyzer/render/oomtext": {"analyzer/render/layout", "analyzer/report", "internal/sanitize"},
	"internal/attach": {
		"analyzer", "analyzer/render/layout", "internal/cli", "internal/control", "internal/launch",
		"internal/safefile", "internal/sanitize", "internal/tracefile", "trace", "trace/spool",
	},
	"internal/exports": {
		"analyzer", "analyzer/export", "analyzer/profile", "analyzer/render", "analyzer/render/layout",
		"analyzer/report", "analyzer/rules/rulefile", "internal/cli", "internal/sanitize", "internal/top",
		"internal/tracefile", "internal/version", "trace", "trace/spool",
	},
	"internal/metrics": {"internal/loopback", "internal/sanitize"},
	"internal/cli": {
		"analyzer", "analyzer/callstack", "analyzer/moment", "analyzer/profile", "analyzer/render",
		"analyzer/render/layout", "analyzer/rules", "analyzer/rules/rulefile", "analyzer/symbol",
		"internal/sanitize", "internal/version",
	},
	"internal/control":  {"trace"},
	"internal/launch":   {"internal/cli", "internal/safefile"},
	"internal/loopback": {},
	"internal/tracefile": {
		"analyzer", "analyzer/export", "analyzer/moment", "analyzer/profile", "analyzer/report",
		"analyzer/rules/rulefile", "internal/cli", "internal/safefile", "internal/sanitize", "trace",
		"trace/importer", "trace/spool",
	},
	"internal/offheap":  {},
	"internal/safefile": {},
	"internal/sanitize": {},
	"internal/version":  {},
}

// theirs lists who may import a module of others directly. Modules that are not listed may be imported where the
// package's own rules allow it.
var theirs = map[string][]string{
	"golang.org/x/sys": {"trace/spool", "interpose", "cmd/memtrace", "internal/attach", "internal/control",
		"internal/launch", "internal/top", "internal/offheap", "internal/safefile"},
	"github.com/rs/zerolog":     {"interpose", "internal/cli", "internal/top"},
	"github.com/NVIDIA/go-nvml": {"cuda/nvml"},
	// verbs; their arguments, flags, help and pages
	"github.com/spf13/cobra":       {"cmd/memtrace", "internal/cli", "internal/exports"},
	"charm.land":                   {"internal/top"},
	"github.com/charmbracelet":     {"internal/attach", "internal/cli", "internal/top"},
	"github.com/google/pprof":      {"analyzer/export", "trace/importer"},
	"google.golang.org/protobuf":   {"analyzer/export"},
	"gonum.org/v1/plot":            {"analyzer/plot"},
	"codeberg.org/go-pdf/fpdf":     {"analyzer/plot"},
	"github.com/pelletier/go-toml": {"analyzer/rules/rulefile"},
	"C":                            {"interpose", "cuda/nvml"},
}

// guestNever must not be reachable from the preloaded library at all. go-nvml would leave it with undefined symbols,
// with which LD_BIND_NOW=1 ends every program at its start; the others are dead weight in the traced process.
var guestNever = []string{
	"github.com/NVIDIA/go-nvml", "github.com/spf13/cobra", "github.com/google/pprof", "github.com/pelletier/go-toml",
	module + "cmd", module + "cuda/nvml", module + "analyzer/export", module + "internal/page",
	module + "analyzer/plot", module + "analyzer/rules/rulefile", module + "trace/textform", module + "analyzer/cause",
	module + "analyzer/moment", module + "analyzer/training", module + "analyzer/diff",
	"net/http", "os/exec",
}

// guestNeverItself are packages that the preloaded library must not contain, though it does contain rooms below them.
var guestNeverItself = []string{module + "analyzer", module + "analyzer/render"}

// pkg is what `go list` reports of one package.
type pkg struct {
	ImportPath, Name                   string
	Imports, TestImports, XTestImports []string
	Deps                               []string
}

// root returns the module's root folder. It also opens every folder in it: a test's result is cached until something
// that the test opened changes, and what a command opens on its behalf does not count.
func root(t *testing.T) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(file), "..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && (strings.HasPrefix(entry.Name(), ".git") || entry.Name() == "build" ||
			entry.Name() == "testdata") {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// list returns the packages that match the patterns.
func list(t *testing.T, patterns ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Name,Imports,TestImports,XTestImports,Deps"},
		patterns...)...)
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		all = append(all, p)
	}
}

// under reports whether a package is path or is below it.
func under(pkg, path string) bool { return pkg == path || strings.HasPrefix(pkg, path+"/") }

// isHelper reports whether a package without a row in the table is a tool or a helper of the tests.
func isHelper(pkg string) bool { return under(pkg, "internal") || under(pkg, "tools") }

// TestOwnImports: arrows point downwards only, and every package that ships has a row.
func TestOwnImports(t *testing.T) {
	for _, p := range list(t, "./...") {
		name := strings.TrimPrefix(p.ImportPath, module)
		allowed, listed := ours[name]
		helper := !listed && isHelper(name)
		if !listed && !helper {
			t.Errorf("%s has no row in the table of arrows: add one that says what it may import", name)
		}
		for _, imported := range p.Imports {
			if !strings.HasPrefix(imported, module) {
				continue
			}
			imported = strings.TrimPrefix(imported, module)
			if under(imported, "cmd") || imported == "interpose" {
				t.Errorf("%s imports %s, a main", name, imported)
			} else if !helper && !slices.Contains(allowed, imported) {
				t.Errorf("%s imports %s; it may import %v", name, imported, allowed)
			}
		}
		for _, imported := range append(p.TestImports, p.XTestImports...) {
			if imported = strings.TrimPrefix(imported, module); under(imported, "cmd") || imported == "interpose" {
				t.Errorf("a test of %s imports %s, a main", name, imported)
			}
		}
	}
}

// TestForeignImports: a few modules have one place each, so that they can be replaced there and are looked for there.
// Tools and helpers of the tests, which have no row in the table of arrows, may import what they like.
func TestForeignImports(t *testing.T) {
	for _, p := range list(t, "./...") {
		name := strings.TrimPrefix(p.ImportPath, module)
		if _, listed := ours[name]; !listed && isHelper(name) {
			continue
		}
		for _, imported := range p.Imports {
			for foreign, users := range theirs {
				if under(imported, foreign) && !slices.Contains(users, name) {
					t.Errorf("%s imports %s; only %v may", name, imported, users)
				}
			}
		}
	}
}

// TestGuestStaysSmall checks everything that is linked into the preloaded library, however indirectly.
func TestGuestStaysSmall(t *testing.T) {
	found := list(t, "./interpose")
	if len(found) != 1 || len(found[0].Deps) == 0 {
		t.Fatalf("go list gives %d packages for the library", len(found))
	}
	for _, dep := range found[0].Deps {
		inside := func(never string) bool { return under(dep, never) }
		if slices.ContainsFunc(guestNever, inside) || slices.Contains(guestNeverItself, dep) {
			t.Errorf("the preloaded library contains %s", dep)
		}
	}
}

// TestAnalyzerComputes: no package of the analyzer logs, uses the network, runs commands or goes around Go's types.
func TestAnalyzerComputes(t *testing.T) {
	never := []string{"C", "log", "log/slog", "net", "net/http", "os/exec", "unsafe"}
	found := list(t, "./analyzer/...")
	if len(found) < 15 {
		t.Fatalf("%d packages in analyzer", len(found))
	}
	for _, p := range found {
		for _, name := range p.Imports {
			if slices.Contains(never, name) {
				t.Errorf("%s imports %s", p.ImportPath, name)
			}
		}
	}
}
