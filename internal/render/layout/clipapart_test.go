package layout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestClipApart(t *testing.T) {
	layers := []string{"model.model.layers.0.mlp.down_proj.weight", "model.model.layers.1.mlp.down_proj.weight",
		"model.model.layers.12.mlp.down_proj.weight", "lm_head"}
	for _, test := range []struct {
		texts []string
		width int
		ascii bool
		want  []string
	}{
		{layers, 60, false, layers},
		{layers, 26, false, []string{"….layers.0…own_proj.weight", "….layers.1…own_proj.weight",
			"….layers.12…wn_proj.weight", "lm_head"}},
		{layers[:2], 26, true, []string{"...layers.0..._proj.weight", "...layers.1..._proj.weight"}},
		{[]string{"    ▸ " + layers[0], "    ▸ " + layers[1]}, 30, false, nil},
		{[]string{"model.model.embed.weight", "model.model.lm_head.bias"}, 12, false,
			[]string{"mod…d.weight", "mod…ead.bias"}},
	} {
		got := ClipApart(test.texts, test.width, test.ascii)
		if test.want != nil && !slices.Equal(got, test.want) {
			t.Errorf("%d columns: %q, want %q", test.width, got, test.want)
		}
		for i, text := range got {
			if Width(text) > test.width || slices.Contains(got[:i], text) {
				t.Errorf("%d columns: %q", test.width, got)
			}
		}
	}
	if got := ClipApart([]string{"    " + layers[0], "    " + layers[1]}, 24, false); !strings.HasPrefix(got[0],
		"    …") {
		t.Errorf("the indentation is gone: %q", got)
	}
}

// TestClipApartFits: for any texts, none is longer than allowed, and those that fit are unchanged.
func TestClipApartFits(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	pieces := []string{"a", "層", "é", "layers.", "0", "1", " ", "…", "🙂", "attention"}
	for range 2000 {
		var texts []string
		for range 1 + random.IntN(6) {
			text := ""
			for range random.IntN(12) {
				text += pieces[random.IntN(len(pieces))]
			}
			texts = append(texts, text)
		}
		width := 1 + random.IntN(20)
		for i, text := range ClipApart(texts, width, random.IntN(2) == 0) {
			if Width(text) > width || Width(texts[i]) <= width && text != texts[i] {
				t.Fatalf("%q became %q, %d cells of %d", texts[i], text, Width(text), width)
			}
		}
	}
}

// TestLayersStayApartInTables: at no width from 60 columns on do two rows of different layers look the same.
func TestLayersStayApartInTables(t *testing.T) {
	for width := 60; width < 120; width += 7 {
		var text strings.Builder
		p := NewPage(&text, Options{Width: width})
		var rows [][]Cell
		for i := range 12 {
			rows = append(rows,
				[]Cell{{Text: fmt.Sprintf("base_model.model.model.layers.%d.self_attn.q_proj.lora_A.default.weight",
					i)}, {Text: "2.00 MiB"}, {Text: "100.0 %"}, {Text: "832.0 MiB"}})
		}
		p.Table([]Column{{Title: "name"}, {Title: "weight", Right: true}, {Title: "share", Right: true},
			{Title: "together", Right: true}}, rows)
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		slices.Sort(lines)
		if len(slices.Compact(lines)) != 13 {
			t.Errorf("%d columns:\n%s", width, text.String())
		}
	}
}
