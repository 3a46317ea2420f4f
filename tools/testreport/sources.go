package main

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// sources reads from the text of the tests: claims, build tags and variables.
type sources struct {
	root    string // the folder that the command runs in
	command []string
	module  string
	parsed  map[string]*folder
}

// folder is what the test files of a package hold.
type folder struct {
	claims    map[string]string   // the first paragraph before a test, by its name
	tags      map[string][]string // what its file must be built with, by the test's name
	variables []string            // of the environment that the files read
}

// always are variables that change what a test does, and that it need not read itself.
var always = []string{"CGO_ENABLED", "TIER"}

// never are variables that hold where things are: the same in the shell in which the command will be typed.
var never = []string{"HOME", "MEMTRACE_CACHE", "PATH", "TMPDIR", "XDG_CACHE_HOME"}

func newSources(root string, command []string) *sources {
	s := &sources{root: root, command: command, parsed: map[string]*folder{}}
	if text, err := os.ReadFile(filepath.Join(root, "go.mod")); err == nil {
		if m := regexp.MustCompile(`(?m)^module (\S+)`).FindSubmatch(text); m != nil {
			s.module = string(m[1])
		}
	}
	return s
}

// folder returns a package as one writes it for the go command: below the module's root if it is one of its.
func (s *sources) folder(importPath string) string {
	if rest, ok := strings.CutPrefix(importPath, s.module+"/"); ok && s.module != "" {
		return "./" + rest
	}
	return importPath
}

// of returns what a package's files hold, as far as they can be read: a claim that is not found is no reason to fail.
func (s *sources) of(importPath string) *folder {
	if f := s.parsed[importPath]; f != nil {
		return f
	}
	f := &folder{claims: map[string]string{}, tags: map[string][]string{}}
	s.parsed[importPath] = f
	paths, _ := filepath.Glob(filepath.Join(s.root, filepath.FromSlash(s.folder(importPath)), "*_test.go"))
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil {
			f.read(file)
		}
	}
	return f
}

func (f *folder) read(file *ast.File) {
	tags := tagsOf(file)
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv == nil {
			paragraph, _, _ := strings.Cut(strings.TrimSpace(function.Doc.Text()), "\n\n")
			f.claims[function.Name.Name] = paragraph
			f.tags[function.Name.Name] = tags
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return true
		}
		function, isSelector := call.Fun.(*ast.SelectorExpr)
		name, isLiteral := call.Args[0].(*ast.BasicLit)
		if isSelector && isLiteral && (function.Sel.Name == "Getenv" || function.Sel.Name == "LookupEnv") {
			if variable, err := strconv.Unquote(name.Value); err == nil {
				f.variables = append(f.variables, variable)
			}
		}
		return true
	})
}

// tagsOf returns the tags that a file requires and that are not properties of the machine.
func tagsOf(file *ast.File) (tags []string) {
	machine := []string{"linux", "cgo", "unix", "amd64", "arm64"}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			expression, err := constraint.Parse(comment.Text)
			if err != nil || group.Pos() > file.Package {
				continue
			}
			expression.Eval(func(tag string) bool {
				if !slices.Contains(machine, tag) {
					tags = append(tags, tag)
				}
				return true
			})
		}
	}
	return tags
}

// alone returns the command that runs the tests of a package that a pattern of `go test -run` matches, with the
// variables and flags that change what they do. Flags are those of the command that failed, if that was `go test`.
func (s *sources) alone(importPath, test, pattern string) string {
	f := s.of(importPath)
	words := append(s.environment(f), "go", "test")
	for _, flag := range []string{"-race", "-short"} {
		if slices.Contains(s.command, flag) {
			words = append(words, flag)
		}
	}
	root, _, _ := strings.Cut(test, "/")
	tags, known := f.tags[root]
	if !known {
		tags = slices.Concat(slices.Collect(maps.Values(f.tags))...)
	}
	for i, word := range s.command {
		if value, ok := strings.CutPrefix(word, "-tags="); ok {
			tags = slices.Concat(tags, strings.Split(value, ","))
		} else if word == "-tags" && i+1 < len(s.command) {
			tags = slices.Concat(tags, strings.Split(s.command[i+1], ","))
		}
	}
	if len(tags) > 0 {
		words = append(words, "-tags", strings.Join(sorted(tags), ","))
	}
	if pattern != "" {
		words = append(words, "-run", quote(pattern))
	}
	return strings.Join(append(words, s.folder(importPath)), " ")
}

// environment returns the variables that the command was given by env, and those that are set and that a package's
// tests read, as one writes them before a command.
func (s *sources) environment(f *folder) (words []string) {
	given := map[string]bool{}
	if s.command[0] == "env" {
		for _, word := range s.command[1:] {
			name, value, isVariable := strings.Cut(word, "=")
			if !isVariable {
				break
			}
			words = append(words, name+"="+quote(value))
			given[name] = true
		}
	}
	for _, name := range sorted(slices.Concat(always, f.variables)) {
		if value := os.Getenv(name); value != "" && !given[name] && !slices.Contains(never, name) {
			words = append(words, name+"="+quote(value))
		}
	}
	return words
}

// sorted returns the words in their order, each once.
func sorted(words []string) []string { return slices.Compact(slices.Sorted(slices.Values(words))) }

// only returns the pattern of `go test -run` that matches one test, or one of its subtests.
func only(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// quote writes a word for a shell.
func quote(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("-_./=:,@%+", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') &&
			(r < 'a' || r > 'z')
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
