package render

import (
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// TestOwnAccounts: the report contains a framework's own account, the largest lines first, and counts the hidden ones.
func TestOwnAccounts(t *testing.T) {
	a := report.OwnAccount{Framework: "jax", Device: "cuda:0", Bytes: 7 << 20, Count: 9, Sites: []report.OwnSite{
		{Site: "train/a.py:1 main", Bytes: 4 << 20, Count: 2}, {Site: "train/b\x1b.py:2 main", Bytes: 2 << 20,
			Count: 3}, {Site: "full", Bytes: 1 << 20, Count: 4}}}
	var out strings.Builder
	p := layout.NewPage(&out, layout.Options{Rows: 2, Width: 100})
	writeOwnAccounts(p, &report.Summary{OwnAccounts: []report.OwnAccount{a}})
	text := out.String()
	words := strings.Join(strings.Fields(text), " ")
	for _, want := range []string{"What JAX itself had on cuda:0", "7.00 MiB in 9 buffers",
		"train/a.py:1 main 4.00 MiB 57.1% 2", "1 more, with -n 0"} {
		if !strings.Contains(words, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "full") || strings.Contains(text, "\x1b") {
		t.Errorf("too much is shown:\n%q", text)
	}
}
