package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestVariablesAreKnown: the library knows every variable that docs/environment.md has or the Python package sets. Of
// one that it does not know it warns in every recorded process: it did so of MEMTRACE_PUSH_TOKEN, and of the one by
// which pytest starts itself once more.
func TestVariablesAreKnown(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(filepath.Join(root(t), path))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	known := map[string]bool{}
	for _, m := range regexp.MustCompile(`\{"([A-Z_]+)", (?:set_\w+|ignore)\}`).
		FindAllStringSubmatch(read("cshim/base/config.c"), -1) {
		known["MEMTRACE_"+m[1]] = true
	}
	if len(known) < 25 {
		t.Fatalf("only %d variables are read from cshim/base/config.c", len(known))
	}
	sources, err := filepath.Glob(filepath.Join(root(t), "python/memtrace/*.py"))
	if err != nil || len(sources) < 10 {
		t.Fatalf("%d sources, %v", len(sources), err)
	}
	places := map[string]*regexp.Regexp{"docs/environment.md": regexp.MustCompile("(?m)^\\| `(MEMTRACE_[A-Z_]+)`")}
	for _, path := range sources {
		relative, err := filepath.Rel(root(t), path)
		if err != nil {
			t.Fatal(err)
		}
		places[relative] = regexp.MustCompile(`["'](MEMTRACE_[A-Z_]+)["']`)
	}
	for path, pattern := range places {
		for _, m := range pattern.FindAllStringSubmatch(read(path), -1) {
			if !known[m[1]] {
				t.Errorf("%s has %s, which cshim/base/config.c does not know", path, m[1])
			}
		}
	}
}
