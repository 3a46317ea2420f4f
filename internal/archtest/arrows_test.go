// Package archtest keeps the edges between packages: who may import whom, within the module and outside it.
package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"memtrace/internal/guest"
)

const module = "memtrace/"

// ours lists, for every package that ships, which packages of the module it may import directly. Packages below
// internal/ that are not listed are tools and helpers of the tests: they may import what they like but the two mains,
// and nothing that ships may import them.
var ours = map[string][]string{
	"cuda":              {},
	"cuda/nvml":         {},
	"internal/section":  {},
	"trace":             {"cuda", "internal/section"},
	"internal/textform": {"cuda", "trace"},
	"internal/importer": {"cuda", "trace"},
	"internal/rewrite":  {"cuda", "internal/heap", "internal/offheap", "trace"},
	"internal/spool":    {"cuda", "internal/safefile", "internal/section", "trace"},
	"internal/fold":     {},
	"internal/rules":    {},
	"internal/symbol":   {"internal/safefile", "trace"},
	"analyzer/report":   {"internal/fold", "internal/rules", "trace"},
	"internal/cause": {
		"analyzer/report", "internal/callstack", "internal/fold", "internal/heap", "internal/oom",
		"internal/profile", "internal/rules", "trace",
	},
	"internal/heap":      {"analyzer/report", "cuda", "internal/offheap", "trace"},
	"internal/callstack": {"analyzer/report", "internal/heap", "internal/rules", "internal/symbol", "trace"},
	"internal/profile": {
		"analyzer/report", "cuda", "internal/callstack", "internal/heap", "internal/rules", "internal/symbol",
		"trace",
	},
	"internal/device": {
		"analyzer/report", "cuda", "internal/callstack", "internal/heap", "internal/profile", "trace",
	},
	"internal/training": {
		"analyzer/report", "cuda", "internal/callstack", "internal/heap", "internal/offheap", "internal/profile",
		"internal/rules", "trace",
	},
	"internal/moment":        {"analyzer/report", "internal/device", "internal/heap", "internal/profile", "trace"},
	"internal/render/layout": {"analyzer/report", "internal/rules", "internal/sanitize"},
	"internal/oom": {
		"analyzer/report", "cuda", "internal/callstack", "internal/device", "internal/heap", "internal/profile",
		"internal/rules", "trace",
	},
	"analyzer": {
		"analyzer/report", "cuda", "internal/callstack", "internal/cause", "internal/device", "internal/heap",
		"internal/moment", "internal/offheap", "internal/oom", "internal/profile", "internal/rules", "internal/spool",
		"internal/symbol", "internal/training", "trace",
	},
	"internal/diff": {"analyzer/report", "internal/callstack", "internal/fold", "internal/profile"},
	"internal/check": {
		"analyzer", "analyzer/report", "internal/cli", "internal/diff", "internal/moment", "internal/render",
		"internal/render/layout", "internal/rules/rulefile", "internal/safefile", "internal/sanitize",
	},
	"internal/rules/rulefile": {"internal/rules", "internal/safefile"},
	"internal/render": {
		"analyzer/report", "internal/callstack", "internal/cause", "internal/diff", "internal/fold",
		"internal/render/layout", "internal/render/oomtext", "internal/rules", "internal/sanitize",
	},
	"internal/export": {
		"analyzer", "analyzer/report", "cuda", "internal/callstack", "internal/heap", "internal/moment",
		"internal/render/layout", "internal/sanitize", "internal/symbol", "trace",
	},
	"internal/page": {
		"analyzer/report", "internal/diff", "internal/loopback", "internal/render", "internal/render/layout",
		"internal/render/oomtext", "internal/sanitize",
	},
	"internal/plot": {"analyzer/report", "internal/render/layout", "internal/rules", "internal/sanitize"},
	"cmd/memtrace": {
		"analyzer", "analyzer/report", "internal/attach", "internal/check", "internal/cli", "internal/control",
		"internal/diff", "internal/export", "internal/exportcmd", "internal/importer", "internal/launch",
		"internal/moment", "internal/page", "internal/plot", "internal/profile", "internal/render",
		"internal/render/layout", "internal/rewrite", "internal/rules/rulefile", "internal/runprofile",
		"internal/safefile", "internal/sanitize", "internal/spool", "internal/symbol", "internal/textform",
		"internal/top", "internal/tracefile", "internal/version", "trace",
	},
	"interpose": {
		"analyzer/report", "cuda", "internal/callstack", "internal/oom", "internal/render/layout",
		"internal/render/oomtext", "internal/rewrite", "internal/safefile", "internal/sanitize", "internal/spool",
		"internal/symbol", "internal/version", "trace",
	},
	"internal/top": {
		"analyzer", "analyzer/report", "cuda/nvml", "internal/control", "internal/metrics", "internal/moment",
		"internal/profile", "internal/render/layout", "internal/rules", "internal/rules/rulefile",
		"internal/safefile", "internal/sanitize", "internal/spool", "internal/symbol", "internal/version", "trace",
	},
	"internal/render/oomtext": {"analyzer/report", "internal/render/layout", "internal/sanitize"},
	"internal/attach": {
		"analyzer", "analyzer/report", "internal/cli", "internal/control", "internal/launch",
		"internal/render/layout", "internal/safefile", "internal/sanitize", "internal/spool", "internal/tracefile",
		"trace",
	},
	"internal/exportcmd": {
		"analyzer", "analyzer/report", "internal/cli", "internal/export", "internal/moment", "internal/profile",
		"internal/render", "internal/render/layout", "internal/rules/rulefile", "internal/safefile",
		"internal/sanitize", "internal/spool", "internal/tables", "internal/top", "internal/tracefile",
		"internal/version", "trace",
	},
	"internal/tables": {
		"analyzer", "analyzer/report", "internal/callstack", "internal/heap", "internal/symbol", "trace",
	},
	"internal/metrics": {"internal/loopback", "internal/sanitize"},
	"internal/cli": {
		"analyzer", "internal/callstack", "internal/moment", "internal/profile", "internal/render",
		"internal/render/layout", "internal/rules", "internal/rules/rulefile", "internal/sanitize",
		"internal/symbol", "internal/version",
	},
	"internal/control":  {"trace"},
	"internal/launch":   {"internal/cli", "internal/safefile"},
	"internal/loopback": {},
	"internal/tracefile": {
		"analyzer", "analyzer/report", "internal/cli", "internal/export", "internal/importer", "internal/moment",
		"internal/profile", "internal/rules/rulefile", "internal/runprofile", "internal/safefile",
		"internal/sanitize", "internal/spool", "internal/version", "trace",
	},
	"internal/runprofile": {
		"analyzer", "analyzer/report", "internal/moment", "internal/symbol", "trace",
	},
	"internal/offheap":  {},
	"internal/safefile": {},
	"internal/sanitize": {},
	"internal/version":  {},
}

// theirs lists who may import a module of others directly. Modules that are not listed may be imported where the
// package's own rules allow it.
var theirs = map[string][]string{
	"golang.org/x/sys": {
		"interpose", "cmd/memtrace", "internal/attach", "internal/control", "internal/launch", "internal/top",
		"internal/offheap", "internal/safefile", "internal/spool",
	},
	"github.com/rs/zerolog":     {"interpose", "internal/cli", "internal/top"},
	"github.com/NVIDIA/go-nvml": {"cuda/nvml"},
	// verbs; their arguments, flags, help and pages
	"github.com/spf13/cobra":       {"cmd/memtrace", "internal/cli", "internal/exportcmd"},
	"charm.land":                   {"internal/top"},
	"github.com/charmbracelet":     {"internal/attach", "internal/cli", "internal/top"},
	"github.com/google/pprof":      {"internal/export", "internal/importer"},
	"github.com/parquet-go":        {"internal/tables"},
	"google.golang.org/protobuf":   {"internal/export"},
	"gonum.org/v1/plot":            {"internal/plot"},
	"codeberg.org/go-pdf/fpdf":     {"internal/plot"},
	"github.com/pelletier/go-toml": {"internal/check", "internal/rules/rulefile"},
	"C":                            {"interpose", "cuda/nvml"},
}

// guestNever must not be reachable from the preloaded library at all. go-nvml would leave it with undefined symbols,
// with which LD_BIND_NOW=1 ends every program at its start; the others are dead weight in the traced process.
var guestNever = []string{
	"github.com/NVIDIA/go-nvml", "github.com/spf13/cobra", "github.com/google/pprof", "github.com/pelletier/go-toml",
	"github.com/parquet-go",
	module + "cmd", module + "cuda/nvml", module + "internal/export", module + "internal/page",
	module + "internal/plot", module + "internal/rules/rulefile", module + "internal/textform",
	module + "internal/cause", module + "internal/moment", module + "internal/training", module + "internal/diff",
	module + "internal/check",
	"net/http", "os/exec",
}

// guestNeverItself are packages that the preloaded library must not contain, though it does contain rooms below them.
var guestNeverItself = []string{module + "analyzer", module + "internal/render"}

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
	root := guest.Root()
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

// computing are the rooms of the analyzer below internal/.
var computing = []string{"callstack", "cause", "device", "diff", "export", "fold", "heap", "moment", "oom", "plot",
	"profile", "render", "rules", "symbol", "training"}

// TestAnalyzerComputes: no package of the analyzer logs, uses the network, runs commands or goes around Go's types.
func TestAnalyzerComputes(t *testing.T) {
	never := []string{"C", "log", "log/slog", "net", "net/http", "os/exec", "unsafe"}
	patterns := []string{"./analyzer/..."}
	for _, room := range computing {
		patterns = append(patterns, "./internal/"+room+"/...")
	}
	found := list(t, patterns...)
	if len(found) < len(patterns) {
		t.Fatalf("%d packages of %q", len(found), patterns)
	}
	for _, p := range found {
		for _, name := range p.Imports {
			if slices.Contains(never, name) {
				t.Errorf("%s imports %s", p.ImportPath, name)
			}
		}
	}
}
