package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestManPages: every page has its exit statuses, variables and files; the page of run names every variable that
// docs/environment.md has.
func TestManPages(t *testing.T) {
	folder := t.TempDir()
	root := rootCommand(newApp(os.Stdin, os.Stdout, os.Stderr))
	root.SetArgs([]string{"man", folder})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(folder, "*.1"))
	if err != nil || len(pages) < 15 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, path := range pages {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bad := regexp.MustCompile(`(?m)^\\fB-[^ ]*\\fP=.*$`).FindString(string(page)); bad != "" {
			t.Errorf("%s: a flag without the name of its value: %s", filepath.Base(path), bad)
		}
		for _, section := range []string{".SH NAME", ".SH EXIT STATUS", ".SH ENVIRONMENT", ".SH FILES"} {
			if strings.Count(string(page), section+"\n") != 1 {
				t.Errorf("%s: section %s", filepath.Base(path), section)
			}
		}
	}
	documented, err := os.ReadFile("../../docs/environment.md")
	if err != nil {
		t.Fatal(err)
	}
	run, err := os.ReadFile(filepath.Join(folder, "memtrace-run.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)`").FindAllStringSubmatch(string(documented), -1) {
		if row[1] != "MEMTRACE_CACHE" && !strings.Contains(string(run), row[1]) { // that one is for who builds memtrace
			t.Errorf("memtrace-run.1 has no %s", row[1])
		}
	}
}
