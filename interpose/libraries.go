package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"memtrace/internal/callstack"
	"memtrace/internal/safefile"
	"memtrace/internal/spool"
	"memtrace/trace"
)

const (
	// maxRecord bounds the list of a package's files that is read, in bytes, and maxPackages how many packages of a
	// folder are read.
	maxRecord   = 8 << 20
	maxPackages = 1000
	// maxFolders bounds the folders that are searched for packages, and maxFiles the files that are checked.
	maxFolders = 2000
	maxFiles   = 1 << 16
	// libraryDepth is how many folders above a file packages are looked for.
	libraryDepth = 10
)

// packageFinder finds out which of the program's Python files belong to packages that pip installed with --target, into
// a folder whose name does not show it. The metadata beside such a package lists its files. Files are checked when the
// trace is written, not when they come.
type packageFinder struct {
	waiting []string
	seen    map[string]bool     // files
	folders map[string][]string // what packages put into a folder, by name
	found   map[string]bool     // packages and modules, by path
}

// pythonDictionary passes dictionary entries on and reports Python files to the finder.
type pythonDictionary struct {
	spool.Dictionary
	finder *packageFinder
}

func (p pythonDictionary) WriteCode(c trace.Code) error {
	p.finder.note(c.File)
	return p.Dictionary.WriteCode(c)
}

// knownFolder matches files whose owner is known from their folder.
var knownFolder = regexp.MustCompile(`(^|/)(site|dist)-packages/|(^|/)lib(64)?/python3(\.[0-9]+t?)?/`)

func newPackageFinder() *packageFinder {
	return &packageFinder{seen: make(map[string]bool), folders: make(map[string][]string), found: make(map[string]bool)}
}

// note takes in a file that code came from.
func (f *packageFinder) note(file string) {
	if filepath.IsAbs(file) && !f.seen[file] && len(f.seen) < maxFiles && !knownFolder.MatchString(file) {
		f.seen[file] = true
		f.waiting = append(f.waiting, file)
	}
}

// look checks the files that came since the last time and returns the fact to write, nil if nothing is new.
func (f *packageFinder) look() trace.Info {
	before := len(f.found)
	for _, file := range f.waiting {
		file = filepath.Clean(file)
		child := file
		for folder := filepath.Dir(file); folder != "/" && strings.Count(file[len(folder):],
			"/") <= libraryDepth; folder = filepath.Dir(folder) {
			if slices.Contains(f.installed(folder), filepath.Base(child)) {
				f.found[child] = true
				break
			}
			child = folder
		}
	}
	f.waiting = nil
	if len(f.found) == before {
		return nil
	}
	return trace.Info{callstack.LibrariesKey: strings.Join(slices.Sorted(maps.Keys(f.found)), "\x00")}
}

// installed lists what packages put directly into a folder, by the lists of files beside them. None of it has to be
// readable.
func (f *packageFinder) installed(folder string) []string {
	list, looked := f.folders[folder]
	if looked || len(f.folders) >= maxFolders {
		return list
	}
	names := make(map[string]bool)
	entries, _ := os.ReadDir(folder) // of one that cannot be read nothing is known
	left := maxPackages
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".dist-info") || left == 0 {
			continue
		}
		left--
		record, err := safefile.Read(filepath.Join(folder, entry.Name(), "RECORD"), maxRecord)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(record)) {
			if name, _, _ := strings.Cut(line, "/"); len(name) < len(line) {
				names[name] = true
			} else if name, _, _ = strings.Cut(line, ","); strings.HasSuffix(name, ".py") {
				names[name] = true
			}
		}
	}
	list = slices.Collect(maps.Keys(names))
	f.folders[folder] = list
	return list
}
