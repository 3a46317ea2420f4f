package callstack

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"memtrace/internal/symbol"
	"memtrace/trace"
)

// Classifier distinguishes the program's own code from library code, and shortens paths to a form that is the same on
// every machine.
//
// In a program that runs Python, user code is Python: files that belong neither to the interpreter, nor to installed
// packages (ownership has those whose folder does not show it), nor to code that libraries generate at run time. In
// other programs it is native code outside of the system's folders that does not come from a library's headers.
type Classifier struct {
	folder  string // the run's working directory
	python  bool
	command bool              // python -c: code without a file is the user's
	places  map[string]string // by file
	owners  ownership

	packages *symbol.PackageFolders // nil: no file is read
}

// NewClassifier takes the patterns of Options.Own.
func NewClassifier(info trace.Info, own []string) Classifier {
	return Classifier{
		folder:  path.Clean(info["process.cwd"]),
		python:  info["python.version"] != "" || info["python.eval"] != "",
		command: slices.Contains(strings.Split(info["process.argv"], "\x00"), "-c"),
		places:  make(map[string]string),
		owners:  newOwnership(own, info),
	}
}

func (j *Classifier) frame(f symbol.Frame) *Frame {
	v := &Frame{Frame: f, User: j.User(f), short: shortName(&f)}
	how, ruled := foldOf(&f)
	switch {
	case v.User:
	case ruled:
		v.Fold = how
		if how == foldInner && f.Function == "" {
			v.Fold = foldNameless
		}
	case f.Kind == symbol.Native && (j.python || systemFile(f.Module)), f.Kind == symbol.JIT && f.Function == "":
		v.Fold = foldEntry
	}
	return v
}

func (j *Classifier) User(f symbol.Frame) bool {
	switch f.Kind {
	case symbol.Python:
		return j.userFile(f.File)
	case symbol.Native:
		if own, decided := j.owners.decide(f.Module); decided {
			return own
		}
		_, ruled := foldOf(&f)
		return !j.python && !ruled && !systemFile(f.Module)
	}
	return false
}

var (
	installed = regexp.MustCompile(`(^|/)(site|dist)-packages/`)
	standard  = regexp.MustCompile(`(^|/)lib(64)?/python3(\.[0-9]+t?)?/|(^|/)python3[0-9]+\.zip/`)
	// Cells of a notebook and the interactive prompt; <string> is left to Classifier.command.
	interactive = regexp.MustCompile(`^<(stdin|ipython-input-.*|python-input-.*)>$`)
	// memtrace's own package, in any folder.
	ownPackage = regexp.MustCompile(`(^|/)memtrace/_[a-z_]+\.py$`)
	// Programs of `memtrace demo` count as user code although they are in memtrace's own package.
	demo = regexp.MustCompile(`(^|/)memtrace/(_bin/)?demo/`)
	// Code that a library wrote into a file in order to run it.
	generated = regexp.MustCompile(`(^|/)torchinductor_[^/]*/|(^|/)__pycache__/|` + symbol.InductorFile.String())
)

// userFile reports whether a Python file is the program's own.
func (j *Classifier) userFile(file string) bool {
	switch {
	case file == "":
		return false
	case file == "<string>":
		return j.command
	case file[0] == '<':
		return interactive.MatchString(file)
	}
	if own, decided := j.owners.decide(file); decided {
		return own
	}
	if demo.MatchString(file) {
		return true
	}
	return j.packageFolder(file) == "" && !installed.MatchString(file) && !standard.MatchString(file) &&
		!generated.MatchString(file) && !ownPackage.MatchString(file)
}

// packageFolder returns the folder into which a file's package was installed, from the recorded packages, else from the
// metadata next to them; "" if there is none.
func (j *Classifier) packageFolder(file string) string {
	if root := j.owners.library(file); root != "" {
		return path.Dir(root)
	}
	if j.packages == nil || installed.MatchString(file) || standard.MatchString(file) {
		return ""
	}
	return j.packages.Of(file)
}

// systemFolders hold what the system and its administrator installed.
var systemFolders = []string{"/lib/", "/lib32/", "/lib64/", "/usr/lib/", "/usr/lib32/", "/usr/lib64/",
	"/usr/local/lib/", "/usr/local/lib64/", "/usr/local/cuda",
	"/opt/conda/lib/", "/nix/store/"}

// systemFile reports whether an object file belongs to the system or to an installed package.
func systemFile(file string) bool {
	if file == "" || file[0] == '[' || installed.MatchString(file) {
		return !demo.MatchString(file)
	}
	return slices.ContainsFunc(systemFolders, func(folder string) bool { return strings.HasPrefix(file, folder) })
}

// Places returns a function that shortens the paths of a run's source files as all reports do.
func Places(info trace.Info) func(file string) string {
	j := NewClassifier(info, nil)
	return j.Place
}

// Place shortens a source file's path: relative to the working directory, from the package's name on, or its last two
// parts.
func (j *Classifier) Place(file string) string {
	place, known := j.places[file]
	if !known {
		place = j.shorten(file)
		if j.places == nil { // a set of stacks built by a test
			j.places = make(map[string]string)
		}
		j.places[file] = place
	}
	return place
}

func (j *Classifier) shorten(file string) string {
	if file == "" || file[0] == '<' {
		return file
	}
	for _, roots := range []*regexp.Regexp{installed, standard} {
		if all := roots.FindAllStringIndex(file, -1); all != nil {
			return file[all[len(all)-1][1]:]
		}
	}
	if folder := j.packageFolder(file); folder != "" {
		return strings.TrimPrefix(file, strings.TrimSuffix(folder, "/")+"/")
	}
	clean := path.Clean(file)
	if !path.IsAbs(clean) && !strings.HasPrefix(clean, "../") {
		return clean
	}
	if rest, below := strings.CutPrefix(clean, strings.TrimSuffix(j.folder, "/")+"/"); below && path.IsAbs(j.folder) {
		return rest
	}
	parts := strings.Split(strings.TrimPrefix(clean, "/"), "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}
