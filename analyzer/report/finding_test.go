package report

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFindingsAreDocumented compares the table of docs/findings.md with FindingKinds.
func TestFindingsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| id | severity | what it says |")
	if !ok {
		t.Fatal("docs/findings.md has no table of findings")
	}
	var documented []FindingKind
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (\\w+) \\| (.*) \\|$").FindAllStringSubmatch(table,
		-1) {
		documented = append(documented, FindingKind{m[1], m[2], m[3]})
	}
	if !slices.Equal(documented, FindingKinds) {
		t.Errorf("docs/findings.md has\n%v\nKinds are\n%v", documented, FindingKinds)
	}
}

// TestFindingsHaveOneKind: an id has one meaning, and one of the four severities.
func TestFindingsHaveOneKind(t *testing.T) {
	seen := make(map[string]bool)
	for _, k := range FindingKinds {
		if seen[k.ID] {
			t.Errorf("%s stands there twice", k.ID)
		}
		seen[k.ID] = true
		if !slices.Contains([]string{SeverityAlarm, SeverityWarning, SeverityAdvice, SeverityInfo}, k.Severity) {
			t.Errorf("%s has severity %q", k.ID, k.Severity)
		}
	}
}
