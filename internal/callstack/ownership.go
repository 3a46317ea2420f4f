package callstack

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"memtrace/trace"
)

// LibrariesKey is the fact about a run that lists installed packages in folders whose names do not show it, separated
// by NUL: those installed by pip with --target. The recorder finds them by the packages' metadata.
const LibrariesKey = "python.libraries"

// ownership decides what is the program's own code where paths alone do not show it.
type ownership struct {
	patterns  []ownPattern
	libraries []string // packages and modules: folders and files
}

type ownPattern struct {
	path *regexp.Regexp
	own  bool
}

// CheckOwn checks patterns of Options.Own. The error describes the first invalid one.
func CheckOwn(patterns []string) error {
	for _, text := range patterns {
		if strings.Trim(strings.TrimPrefix(text, "!"), "/") == "" {
			return fmt.Errorf(
				"%q: name a package or a path, such as accelerate or '*/vendor/*.py'; with ! before it, it is a library's", text)
		}
		if len(text) > maxOwnPattern {
			return errors.New("a pattern is too long")
		}
	}
	return nil
}

const maxOwnPattern = 4096

func newOwnership(patterns []string, info trace.Info) ownership {
	var o ownership
	for _, text := range patterns {
		rest, not := strings.CutPrefix(text, "!")
		o.patterns = append(o.patterns, ownPattern{globPath(rest), !not})
	}
	if list := info[LibrariesKey]; list != "" {
		o.libraries = slices.DeleteFunc(strings.Split(list, "\x00"), func(file string) bool {
			return !path.IsAbs(file)
		})
	}
	return o
}

// globPath compiles a glob over whole parts of a path: * is any text, ? one character; everything below a match
// matches, too.
func globPath(glob string) *regexp.Regexp {
	text := regexp.QuoteMeta(strings.Trim(glob, "/"))
	return regexp.MustCompile("(^|/)" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(text) + "(/|$)")
}

// decide applies the user's patterns to a file: the last match decides.
func (o *ownership) decide(file string) (own, decided bool) {
	for _, p := range slices.Backward(o.patterns) {
		if p.path.MatchString(file) {
			return p.own, true
		}
	}
	return false, false
}

// library returns the package of the run's list that a file is part of, "" for none.
func (o *ownership) library(file string) string {
	for _, root := range o.libraries {
		if rest, ok := strings.CutPrefix(file, root); ok && (rest == "" || rest[0] == '/') {
			return root
		}
	}
	return ""
}

// frameworks are the packages whose frames are less useful than those of their callers: they show what the memory is
// for, but not which code needs it.
var frameworks = []string{"torch", "functorch", "torchgen", "triton", "mxnet", "jax", "jaxlib", "tensorflow", "keras",
	"cupy", "cupyx", "numba", "numba_cuda", "numpy", "opt_einsum"}

// isInfrastructure reports whether a Python frame does not identify an owner: it belongs to the framework, the
// interpreter, generated code, or memtrace.
func (j *Classifier) isInfrastructure(f *Frame) bool {
	file := f.File
	switch {
	case f.User:
		return false
	case f.Fold == foldHide, file == "", file[0] == '<', standard.MatchString(file) && !installed.MatchString(file),
		generated.MatchString(file), ownPackage.MatchString(file):
		return true
	}
	name, _, _ := strings.Cut(j.Place(file), "/")
	return slices.Contains(frameworks, strings.TrimSuffix(name, ".py"))
}
