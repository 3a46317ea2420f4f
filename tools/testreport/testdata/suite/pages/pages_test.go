//go:build suite

// Package pages fails: with long texts, in subtests, and with a word of its own.
package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// page is 60 lines, one of them with a word.
func page(word string) string {
	var lines strings.Builder
	for i := range 60 {
		if i == 40 {
			fmt.Fprintln(&lines, word)
		}
		fmt.Fprintf(&lines, "line %d\n", i)
	}
	return lines.String()
}

// The page says how much memory
// is left.
//
// It once said how much is used.
func TestPage(t *testing.T) {
	folder, err := filepath.Abs("../build/recordings/4f1c")
	if err != nil {
		t.Fatal(err)
	}
	t.Log("recording: " + folder)
	t.Errorf("page is\n%swant\n%s", page("2 MiB left"), page("3 MiB left"))
}

func TestLongPage(t *testing.T) {
	t.Errorf("no word in\n%s", page("2 MiB left"))
}

// TestLine tells of texts so short that all of them is shown.
func TestLine(t *testing.T) {
	t.Errorf("got\n%s\nwant\n%s", "one\ntwo", "one\nthree")
}

// TestTable: each row has a sum.
func TestTable(t *testing.T) {
	t.Log("recording: build/recordings/77aa")
	t.Log("recording: build/recordings/77aa")
	t.Run("good row", func(t *testing.T) {})
	t.Run("row's sum (a+b)", func(t *testing.T) {
		t.Run("deep", func(t *testing.T) {
			t.Parallel()
			fmt.Println("the program says: out of memory")
			t.Fatalf("sum is %s, want 3", os.Getenv("SUITE_SUM"))
		})
	})
}

// TestBoth fails in a row and by itself.
func TestBoth(t *testing.T) {
	t.Run("row", func(t *testing.T) { t.Error("the row is empty") })
	t.Error("one row of 2 is empty")
}
