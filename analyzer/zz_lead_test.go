package analyzer_test

import (
	"encoding/json"
	"os"
	"testing"

	"memtrace/analyzer"
	"memtrace/analyzer/rules/rulefile"
	"memtrace/trace"
)

func TestLead(t *testing.T) {
	path := os.Getenv("LEAD")
	if path == "" {
		t.Skip()
	}
	open := func() trace.Source {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := trace.NewReader(f, -1)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	set, err := rulefile.Preset("torch")
	if err != nil {
		t.Fatal(err)
	}
	s, err := analyzer.Summarize(open(), analyzer.Options{Training: true, Ahead: open(), Groupings: []string{"category", "module", "site", "phase", "name"}, RuleSets: []analyzer.RuleGrouping{{Name: "category", Rules: set}}, Sites: true})
	if err != nil {
		t.Fatal(err)
	}
	out, _ := json.MarshalIndent(s, "", " ")
	os.WriteFile("/tmp/lead/s.json", out, 0o600)
}
