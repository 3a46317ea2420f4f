package safefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The oldest files go, until the rest keeps to the limit.
func TestTrim(t *testing.T) {
	folder := t.TempDir()
	begin := time.Unix(1_700_000_000, 0)
	for i, name := range []string{"old", "middle", "new"} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
		when := begin.Add(time.Duration(i) * time.Hour)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	Trim(folder, 250)
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) != 2 || filepath.Base(left[0]) == "old" ||
		filepath.Base(left[1]) == "old" {
		t.Errorf("left: %v", left)
	}
}

// A file is replaced in one step or not at all, and nothing is left of an attempt that failed.
func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "file")
	failure := errors.New("no")
	for _, text := range []string{"one", "two", ""} {
		err := Replace(path, func(w io.Writer) error {
			if text == "" {
				return failure
			}
			_, err := io.WriteString(w, text)
			return err
		})
		if text == "" {
			text = "two"
			if !errors.Is(err, failure) {
				t.Errorf("error %v", err)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v, want %q", got, err, text)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}
