package analyzer

import (
	"path"
	"strings"

	"memtrace/analyzer/symbol"
)

// fold says how much a frame tells those who did not write the libraries.
type fold uint8

const (
	foldKeep     fold = iota // shown
	foldHide                 // plumbing: shown only where nothing else is
	foldEntry                // inside of a library that has an interface: of such frames in a row only the outermost one, through which the library was called
	foldOperator             // an operator of a framework: of those in a row only the innermost one
	foldVariant              // the same operator once more, on its way through a dispatcher: shown only where the operator itself is not
)

// foldRule says how to fold the frames that it matches. Empty patterns match everything. Function and file patterns are beginnings, or with a leading "*" parts
// of the text; library patterns are beginnings of the object file's base name.
type foldRule struct {
	kind     symbol.Kind
	library  string
	function string
	file     string
	fold     fold
}

// foldRules are asked in order; the first one that matches decides. Frames that none matches are kept.
var foldRules = []foldRule{
	// memtrace itself.
	{kind: symbol.Native, library: "libmemtrace", fold: foldHide},
	{kind: symbol.Python, file: "*/memtrace/tag", fold: foldHide},

	// CUDA: what matters is the call through which it was entered.
	{kind: symbol.Native, library: "libcuda.", fold: foldEntry},
	{kind: symbol.Native, library: "libcudart", fold: foldEntry},
	{kind: symbol.Native, library: "libcublas", fold: foldEntry},
	{kind: symbol.Native, library: "libcudnn", fold: foldEntry},
	{kind: symbol.Native, library: "libcufft", fold: foldEntry},
	{kind: symbol.Native, library: "libcurand", fold: foldEntry},
	{kind: symbol.Native, library: "libcusparse", fold: foldEntry},
	{kind: symbol.Native, library: "libcusolver", fold: foldEntry},
	{kind: symbol.Native, library: "libnccl", fold: foldEntry},

	// The interpreter: Python frames tell the same.
	{kind: symbol.Interpreter, fold: foldHide},
	{kind: symbol.Native, library: "libpython", fold: foldHide},
	{kind: symbol.Native, library: "python", fold: foldHide},

	// How threads and programs start.
	{kind: symbol.Native, function: "__libc_start", fold: foldHide},
	{kind: symbol.Native, function: "_start", fold: foldHide},
	{kind: symbol.Native, function: "start_thread", fold: foldHide},
	{kind: symbol.Native, function: "clone", fold: foldHide},
	{kind: symbol.Native, function: "__clone", fold: foldHide},
	{kind: symbol.Native, function: "std::thread::", fold: foldHide},
	{kind: symbol.Native, library: "libc.so", fold: foldHide},
	{kind: symbol.Native, library: "libpthread", fold: foldHide},
	{kind: symbol.Native, library: "libstdc++", fold: foldHide},
}

// foldOf finds the rule for a frame.
func foldOf(f *symbol.Frame) fold {
	library := ""
	if f.Module != "" {
		library = path.Base(f.Module)
	}
	for i := range foldRules {
		r := &foldRules[i]
		if r.kind == f.Kind && begins(library, r.library) && begins(f.Function, r.function) && begins(f.File, r.file) {
			return r.fold
		}
	}
	return foldKeep
}

func begins(text, pattern string) bool {
	if part, anywhere := strings.CutPrefix(pattern, "*"); anywhere {
		return strings.Contains(text, part)
	}
	return strings.HasPrefix(text, pattern)
}

// foldNoise leaves out what only those who wrote the libraries want to see. The innermost frame stays where all would go.
func foldNoise(all []*frame) []*frame {
	var shown []*frame
	for i := 0; i < len(all); {
		end := i + 1
		for end < len(all) && (all[end].Kind == symbol.Python) == (all[i].Kind == symbol.Python) {
			end++
		}
		shown = foldRun(shown, all[i:end])
		i = end
	}
	if len(shown) == 0 {
		return all[:min(1, len(all))]
	}
	return shown
}

// foldRun appends what is shown of a run of frames that are all Python or all native.
func foldRun(shown, run []*frame) []*frame {
	operators := false
	for _, f := range run {
		operators = operators || f.fold == foldOperator
	}
	var inner *frame // the operator that stands for those in a row
	for i, f := range run {
		switch f.fold {
		case foldHide:
		case foldEntry:
			if i+1 == len(run) || run[i+1].fold != foldEntry {
				shown = append(shown, f)
			}
		case foldOperator, foldVariant:
			if inner == nil && (f.fold == foldOperator || !operators) {
				inner = f
				shown = append(shown, f)
			}
		default:
			shown = append(shown, f)
		}
	}
	return shown
}
