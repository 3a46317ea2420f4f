package safefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Replace writes a file of a cache, whose folder is this user's own and is made where it is missing, in one step:
// readers see the old file or the new one.
func Replace(path string, write func(io.Writer) error) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(folder, "new-*")
	if err != nil {
		return err
	}
	if err = errors.Join(write(temporary), temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}

// Trim removes the oldest files of a cache that has grown beyond a limit, bytes.
func Trim(folder string, limit int64) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	var files []fs.FileInfo
	total := int64(0)
	for _, entry := range entries {
		if st, err := entry.Info(); err == nil && st.Mode().IsRegular() {
			files = append(files, st)
			total += st.Size()
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, st := range files {
		if total <= limit {
			return
		}
		if os.Remove(filepath.Join(folder, st.Name())) == nil {
			total -= st.Size()
		}
	}
}
