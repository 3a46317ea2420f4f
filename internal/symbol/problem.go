package symbol

import (
	"fmt"
	"slices"
	"strings"
)

// problem is something that prevented names from being found.
type problem struct {
	kind   problemKind
	path   string
	detail string
}

type problemKind uint8

const (
	missing  problemKind = iota // the object file is not here
	replaced                    // it is not the one of the run
	unusable                    // it cannot be opened
	damaged                     // a part of it cannot be read
	split                       // it refers to .dwo files
)

// problemWords describe a problem of one file, and of several, and its remedy.
var problemWords = map[problemKind]struct{ one, many, advice string }{
	missing: {"is not here", "object files of the run are not here",
		"functions in there show as addresses: look at the trace where it was recorded, or record with 'memtrace run --embed-symbols'"},
	replaced: {"is not the file of the run", "object files are not those of the run",
		"functions in there show as addresses: put the files of the run back, or record with 'memtrace run --embed-symbols'"},
	unusable: {"cannot be used", "files cannot be used",
		"names from there are missing: make the files readable, or put whole ones there"},
	damaged: {"is damaged in part", "files are damaged in part",
		"some names or lines from there are missing: put whole files there"},
	split: {"keeps inlined functions in .dwo files", "files keep inlined functions in .dwo files",
		"memtrace does not read those: build without -gsplit-dwarf to see them"},
}

// manyFiles is how many files with the same problem are named one by one.
const manyFiles = 3

// problemTexts formats problems, each once, in a stable order; many of a kind become one text.
func problemTexts(all map[problem]struct{}) []string {
	kinds := make(map[problemKind][]problem)
	for p := range all {
		kinds[p.kind] = append(kinds[p.kind], p)
	}
	var texts []string
	for kind := missing; kind <= split; kind++ {
		list := kinds[kind]
		words := problemWords[kind]
		slices.SortFunc(list, func(a, b problem) int {
			if c := strings.Compare(a.path, b.path); c != 0 {
				return c
			}
			return strings.Compare(a.detail, b.detail)
		})
		if len(list) > manyFiles {
			texts = append(texts, fmt.Sprintf("%d %s, %s among them; %s", len(list), words.many, list[0].path,
				words.advice))
			continue
		}
		for _, p := range list {
			detail := ""
			if p.detail != "" {
				detail = " (" + p.detail + ")"
			}
			texts = append(texts, fmt.Sprintf("%s %s%s; %s", p.path, words.one, detail, words.advice))
		}
	}
	return texts
}
