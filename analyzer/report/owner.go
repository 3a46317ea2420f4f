package report

import (
	"cmp"
	"slices"
	"strings"
)

// OwnerKey is a row of a ledger in the making.
type OwnerKey struct{ Owner, Key string }

// OwnerRows sorts what a map holds, most first.
func OwnerRows(sums map[OwnerKey]uint64) []LedgerRow {
	rows := make([]LedgerRow, 0, len(sums))
	for k, bytes := range sums {
		rows = append(rows, LedgerRow{Owner: k.Owner, Key: k.Key, Bytes: bytes})
	}
	slices.SortFunc(rows, func(a, b LedgerRow) int {
		return cmp.Or(strings.Compare(a.Owner, b.Owner), cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Key, b.Key))
	})
	return rows
}
