package diff

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
)

// Two runs of one program have different paths if they ran from two checkouts, or from two folders, and generated files
// have new names in every run. Files that only one side has are therefore matched: by the path that is left when a
// folder is removed on each side, the same folders for all files, and generated files by the parts of their names that
// are not generated. A file that was renamed is matched by the names of its functions.

// paths maps files of the base to files of the new run.
type paths struct {
	base, changed map[string]string // file -> its name in compared keys; only where it differs
	folders       [][2]string       // taken off, of the base and of the new run
	renamed       [][2]string
	generated     bool
}

// matchPaths matches the files of all groups.
func matchPaths(base, changed *report.Summary) *paths {
	p := &paths{base: map[string]string{}, changed: map[string]string{}}
	before, after := filesOf(base), filesOf(changed)
	only := func(files, others map[string]functions) (list []string) {
		for file := range files {
			if others[file] == nil {
				list = append(list, file)
			}
		}
		slices.Sort(list)
		return list
	}
	gone, fresh := only(before, after), only(after, before)
	gone, fresh = p.matchFolders(gone, fresh)
	p.matchGenerated(gone, fresh)
	p.matchRenamed(gone, fresh, before, after)
	return p
}

// functions are the names of a file's functions that allocate.
type functions map[string]bool

// filesOf lists the files in a summary's keys.
func filesOf(s *report.Summary) map[string]functions {
	files := map[string]functions{}
	for i := range s.Groups {
		g := &s.Groups[i]
		for _, row := range g.Rows {
			before, file, after, ok := cutFile(g.By, row.Key)
			if !ok {
				continue
			}
			if files[file] == nil {
				files[file] = functions{}
			}
			name := strings.TrimSuffix(before, " (")
			if g.By != "function" {
				_, name, _ = strings.Cut(after, " ")
			}
			if name != "" {
				files[file][name] = true
			}
		}
	}
	return files
}

// functionFile is the key of a function: "forward (net/blocks.py)".
var functionFile = regexp.MustCompile(`^(.* \()([^()]*\.[^()]*)(\))$`)

// placeGroupings are those whose keys contain files.
var placeGroupings = []string{"site", "inner", "line", "file", "function"}

// cutFile finds the file in a key of a grouping by place.
func cutFile(by, key string) (before, file, after string, ok bool) {
	switch by {
	case "file":
		return "", key, "", path.Ext(key) != ""
	case "function":
		if m := functionFile.FindStringSubmatch(key); m != nil {
			return m[1], m[2], m[3], true
		}
	case "site", "inner", "line":
		rest := key
		for _, prefix := range callstack.BackwardOf {
			if cut, has := strings.CutPrefix(key, prefix); has {
				before, rest = prefix, cut
			}
		}
		if at := callstack.LineNumber.FindStringIndex(rest); at != nil {
			return before, rest[:at[0]], rest[at[0]:], true
		}
	}
	return "", "", "", false
}

// rename replaces the file in a key by its name in the comparison.
func rename(by, key string, names map[string]string) string {
	if before, file, after, ok := cutFile(by, key); ok {
		if name := names[file]; name != "" {
			return before + name + after
		}
	}
	return key
}

// matchFolders pairs files whose paths differ in their prefixes. Of all pairs of prefixes the one that matches most
// files is applied first; pairs that match equally many, and ambiguous files, are skipped. It returns the unmatched
// files.
func (p *paths) matchFolders(gone, fresh []string) (stillGone, stillFresh []string) {
	for {
		votes := map[[2]string][][2]string{}
		for _, b := range gone {
			for _, n := range fresh {
				if path.Base(b) == path.Base(n) {
					folders := beginnings(b, n)
					votes[folders] = append(votes[folders], [2]string{b, n})
				}
			}
		}
		best, found := [2]string{}, false
		for folders, files := range votes {
			if !found || cmp.Or(cmp.Compare(len(files), len(votes[best])), cmp.Compare(best[0], folders[0]),
				cmp.Compare(best[1], folders[1])) > 0 {
				best, found = folders, true
			}
		}
		if !found {
			return gone, fresh
		}
		for folders, files := range votes {
			if folders != best && len(files) == len(votes[best]) && shareFile(files, votes[best]) {
				return gone, fresh
			}
		}
		p.folders = append(p.folders, best)
		for _, pair := range votes[best] {
			p.base[pair[0]] = pair[1]
			gone = slices.DeleteFunc(gone, func(file string) bool { return file == pair[0] })
			fresh = slices.DeleteFunc(fresh, func(file string) bool { return file == pair[1] })
		}
	}
}

func shareFile(a, b [][2]string) bool {
	for _, x := range a {
		for _, y := range b {
			if (x[0] == y[0]) != (x[1] == y[1]) {
				return true
			}
		}
	}
	return false
}

// beginnings are the prefixes of two paths before their longest common suffix.
func beginnings(a, b string) [2]string {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	same := 0
	for same < min(len(x), len(y)) && x[len(x)-1-same] == y[len(y)-1-same] {
		same++
	}
	return [2]string{strings.Join(x[:len(x)-same], "/"), strings.Join(y[:len(y)-same], "/")}
}

// generatedPart matches the generated parts of names: of Jupyter's cells, Inductor's code, temporary files and folders,
// numbers, hashes.
var generatedPart = regexp.MustCompile(`(ipykernel_)[0-9]+|(torchinductor_)[^/]+|\bc[a-z2-7]{40,}\b|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|` +
	`(\btmp)[a-z0-9_]{8}|\b[0-9]{6,}\b|\b[0-9a-f]{16,}\b`)

// generatedSuffix is how Python's tempfile ends a name: generated code has the dotted name of a module before it, as
// PyG's.
var generatedSuffix = regexp.MustCompile(`(\.[^/]*_)[a-z0-9_]{8}(\.py)$`)

// inductorFolder is the folder of two characters that contains a file of Inductor's code.
var inductorFolder = regexp.MustCompile(`^[a-z2-7]{2}/\*`)

// stableName is the name of a generated file without its generated parts, "" for other files.
func stableName(file string) string {
	name := generatedSuffix.ReplaceAllString(generatedPart.ReplaceAllString(file, "$1$2$4*"), "$1*$2")
	if name == file {
		return ""
	}
	return inductorFolder.ReplaceAllString(name, "*/*")
}

// matchGenerated gives generated files that both sides have the names that they share.
func (p *paths) matchGenerated(gone, fresh []string) {
	names := [2]map[string][]string{{}, {}}
	for side, files := range [][]string{gone, fresh} {
		for _, file := range files {
			if name := stableName(file); name != "" {
				names[side][name] = append(names[side][name], file)
			}
		}
	}
	for name, files := range names[0] {
		others := names[1][name]
		if others == nil {
			continue
		}
		p.generated = true
		for _, file := range files {
			p.base[file] = name
		}
		for _, file := range others {
			p.changed[file] = name
		}
	}
}

// minFunctions is how many functions of the same names are no coincidence.
const minFunctions = 2

// alike reports whether nearly all functions of two files have the same names.
func (f functions) alike(other functions) bool {
	same := 0
	for name := range f {
		if other[name] {
			same++
		}
	}
	return same >= minFunctions && 5*same >= 4*max(len(f), len(other))
}

// matchRenamed pairs the remaining files that have nearly the same functions, where that is unambiguous.
func (p *paths) matchRenamed(gone, fresh []string, before, after map[string]functions) {
	alike := func(file string, of map[string]functions, others []string, in map[string]functions) (list []string) {
		for _, other := range others {
			if of[file].alike(in[other]) {
				list = append(list, other)
			}
		}
		return list
	}
	for _, file := range gone {
		to := alike(file, before, fresh, after)
		if len(to) != 1 || len(alike(to[0], after, gone, before)) != 1 || p.base[file] != "" || p.changed[to[0]] != "" {
			continue
		}
		p.base[file] = to[0]
		p.renamed = append(p.renamed, [2]string{file, to[0]})
	}
}

// notes describe how files were matched whose paths changed.
func (p *paths) notes() (list []string) {
	for _, f := range p.folders {
		list = append(list, fmt.Sprintf("Files %s in the base were compared with files %s in the new run.",
			inFolder(f[0]),
			inFolder(f[1])))
	}
	for _, f := range p.renamed {
		list = append(list, fmt.Sprintf("%s in the base was compared with %s in the new run: they have the same functions.",
			f[0], f[1]))
	}
	if p.generated {
		list = append(list, "Generated files, whose names are made up in each run, were matched by their functions.")
	}
	return list
}

func inFolder(folder string) string {
	if folder == "" {
		return "without a folder before them"
	}
	return "in " + folder
}
