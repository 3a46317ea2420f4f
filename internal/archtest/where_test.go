package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWhere: docs/where.md names files that exist.
func TestWhere(t *testing.T) {
	root := "../.."
	text, err := os.ReadFile(filepath.Join(root, "docs/where.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(
		"`((?:analyzer|cmd|cshim|cuda|docs|internal|scripts|testdata|trace)/[A-Za-z0-9_./*-]*)`").FindAllStringSubmatch(
		string(text), -1)
	if len(named) < 40 {
		t.Fatalf("the page names %d files", len(named))
	}
	for _, m := range named {
		if strings.Contains(m[1], "NAME") || strings.Contains(m[1], "X.Y") {
			continue
		}
		if found, err := filepath.Glob(filepath.Join(root, m[1])); err != nil || len(found) == 0 {
			t.Errorf("docs/where.md names %s, which is not there", m[1])
		}
	}
}
