package render

import (
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// The tags and places of a category fit the terminal's width, and stay different.
func TestCategoryEntriesKeepToTheirWidth(t *testing.T) {
	c := &report.Category{Key: "Feature maps", Bytes: 100, EntryCount: 3}
	for _, layer := range []string{"10", "11", "2"} {
		c.Entries = append(c.Entries, report.CategoryEntry{Tag: "h." + layer + ".attention.self",
			Site: "transformers/models/llama/modeling_llama.py:31 Attention.forward", Bytes: 30})
	}
	for _, width := range []int{60, 80} {
		text := written(t, func(w io.Writer) error {
			p := layout.NewPage(w, layout.Options{Width: width})
			writeEntries(p, c)
			return p.Err()
		})
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("width %d: %d columns: %s", width, n, line)
			}
		}
		for _, layer := range []string{"10", "11", "2."} {
			if strings.Count(text, "h."+layer) != 1 {
				t.Errorf("layer %s cannot be told apart:\n%s", layer, text)
			}
		}
	}
}

func TestCategoryWords(t *testing.T) {
	for name, want := range map[string]string{"Feature maps": "feature maps",
		"PyTorch's allocator": "PyTorch's allocator", "KV cache": "KV cache", "LSTM": "LSTM", "": "", " x": " x"} {
		if got := categoryWords(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
