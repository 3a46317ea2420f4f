package importer

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestRows reads every kind of value from a file that SQLite wrote in UTF-16 and pages of 512 bytes.
func TestRows(t *testing.T) {
	data, err := os.ReadFile("testdata/types.sqlite")
	if err != nil {
		t.Fatal(err)
	}
	f, err := openSQLite(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	table := f.Table("a table")
	if table == nil || f.Table("without_id") != nil || f.Table("empty") == nil || !table.Has("late") || table.Has("k") {
		t.Fatalf("tables %v", f.tables)
	}
	big := []int64{0, 1, -1, 127, -128, 40000, -40000, 1 << 20, -(1 << 23), 1 << 30, 1 << 40, -(1 << 47), 1 << 56}
	n := 0
	err = f.Rows(table, []string{"id", "big", "text", "real", "data", "late", "none"}, func(row []any) error {
		want := fmt.Sprint([]any{int64(1000), int64(5), strings.Repeat("long ", 400), 1.0, nil, nil, nil})
		switch {
		case n < len(big):
			want = fmt.Sprint([]any{int64(n*7 - 3), big[n], fmt.Sprintf("é€😀%d", n), float64(big[n])/8 + 0.25,
				bytes.Repeat([]byte{0, 0xff}, n), nil, nil})
		case n > len(big):
			want = fmt.Sprint([]any{int64(2000), int64(6), nil, nil, nil, int64(9), nil})
		}
		if got := fmt.Sprint(row); got != want {
			t.Errorf("row %d: %s, want %s", n, got, want)
		}
		n++
		return nil
	})
	if err != nil || n != len(big)+2 {
		t.Errorf("%d rows, %v", n, err)
	}
	if err := f.Rows(f.Table("empty"), []string{"a"}, func([]any) error { return errDamaged }); err != nil {
		t.Error(err)
	}
}

// FuzzRows: whatever a file contains, reading it ends.
func FuzzRows(f *testing.F) {
	data, err := os.ReadFile("testdata/types.sqlite")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(_ *testing.T, data []byte) {
		file, err := openSQLite(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for _, table := range file.tables {
			_ = file.Rows(table, table.columns, func([]any) error { return nil })
		}
	})
}
