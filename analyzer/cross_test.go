package analyzer

import (
	"math/rand/v2"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
)

// TestCrossAddsUp: cells add up to rows, columns and the whole, and rows and columns are the ledgers' rows of the two
// groupings.
func TestCrossAddsUp(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 3))
		names := profile.GroupingNames()
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		src := &memorySource{events: randomStream(seed, streamShape{events: 300})}
		fillTables(&src.tables)
		s, err := Summarize(src,
			Options{Question: Question{Groupings: names[:2], Cross: names[:2],
				At: must(moment.Parse([]string{"", "exit"}[seed%2]))}})
		if err != nil {
			t.Fatal(err)
		}
		rows, columns := make(map[string]uint64), make(map[string]uint64)
		var whole uint64
		for _, row := range s.Cross.Rows {
			if len(row.Cells) != len(s.Cross.Columns) {
				t.Fatalf("seed %d: %d cells, %d columns", seed, len(row.Cells), len(s.Cross.Columns))
			}
			for i, bytes := range row.Cells {
				rows[row.Key] += bytes
				columns[s.Cross.Columns[i].Key] += bytes
				whole += bytes
			}
			if rows[row.Key] != row.Bytes {
				t.Errorf("seed %d: %s holds %d, its cells %d", seed, row.Key, row.Bytes, rows[row.Key])
			}
		}
		for i, sums := range []map[string]uint64{rows, columns} {
			for _, r := range s.Ledger(names[i]).Rows {
				if r.Owner == report.OwnerBlocks && sums[r.Key] != r.Bytes {
					t.Errorf("seed %d: %s by %s is %d in the crossed table, %d in the ledger", seed, r.Key, names[i],
						sums[r.Key], r.Bytes)
				}
			}
		}
		for _, column := range s.Cross.Columns {
			if columns[column.Key] != column.Bytes {
				t.Errorf("seed %d: column %s", seed, column.Key)
			}
		}
		if whole != s.Cross.WholeBytes {
			t.Errorf("seed %d: %d of %d", seed, whole, s.Cross.WholeBytes)
		}
	}
}

func TestCrossNeedsTwoGroupings(t *testing.T) {
	for _, wanted := range [][]string{{"tag"}, {"tag", "tag"}, {"tag", "api", "library"}, {"tag", "nothing"}} {
		if _, err := Summarize(&memorySource{}, Options{Question: Question{Cross: wanted}}); err == nil ||
			!strings.Contains(err.Error(), "two different groupings") &&
				!strings.Contains(err.Error(), "cannot group by") {
			t.Errorf("%v: %v", wanted, err)
		}
	}
}
