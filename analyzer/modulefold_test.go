package analyzer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestFoldRepeated(t *testing.T) {
	t.Parallel()
	for want, names := range map[string]string{
		"model.layers.{0..2}.mlp(3) lm_head(1)":         "model.layers.0.mlp lm_head model.layers.1.mlp model.layers.2.mlp",
		"h.{0,2,5}.attn(3)":                             "h.5.attn h.0.attn h.2.attn",
		"h.{5 of 1..9}(5)":                              "h.1 h.3 h.5 h.7 h.9",
		"a.0.b.0(1) a.1.b.1(1)":                         "a.0.b.0 a.1.b.1",
		"a.0.b.{0..1}(2)":                               "a.0.b.0 a.0.b.1",
		"h.{10..11}(2)":                                 "h.11 h.10",
		"layers.0(1) layers.x(1)":                       "layers.0 layers.x",
		"model(1) (no module)(1)":                       "model (no_module)",
		"v.99999999999999999999(1) v.88888888888888(1)": "v.99999999999999999999 v.88888888888888",
	} {
		list := strings.Fields(names)
		for i := range list {
			list[i] = strings.ReplaceAll(list[i], "_module", " module")
		}
		var got []string
		for _, g := range FoldRepeated(list) {
			got = append(got, fmt.Sprintf("%s(%d)", g.Title, len(g.Indices)))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", names, strings.Join(got, " "), want)
		}
	}
}

// Whatever the names are, each is in one group, and the bytes add up.
func TestRepeatedModulesAddUp(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		l := Ledger{}
		var sum uint64
		for range r.IntN(40) {
			var parts []string
			for range 1 + r.IntN(4) {
				parts = append(parts, []string{"a", "b", "0", "1", "2", "17", ""}[r.IntN(7)])
			}
			row := LedgerRow{Owner: OwnerBlocks, Key: strings.Join(parts, "."), Bytes: uint64(r.IntN(1000))}
			if slices.ContainsFunc(l.Rows, func(other LedgerRow) bool { return other.Key == row.Key }) {
				continue
			}
			sum += row.Bytes
			l.Rows = append(l.Rows, row)
		}
		count := 0
		for _, m := range l.RepeatedModules() {
			sum -= m.Bytes
			count += m.Count
			if m.Largest > m.Bytes || m.Same && m.Bytes != uint64(m.Count)*m.Largest {
				t.Errorf("%+v", m)
			}
		}
		if sum != 0 || count != len(l.Rows) {
			t.Fatalf("%d bytes are missing, %d of %d names", sum, count, len(l.Rows))
		}
	}
}
