package report

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// For any names, each is in one group, and the bytes add up.
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
