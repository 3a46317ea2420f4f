package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// graph maps each name to the names that it depends on.
type graph map[string][]string

const module = "memtrace/"

// shown are the Go packages that the picture has: what ships, without small helpers that everybody may use.
var shown = []string{"analyzer", "trace", "cmd", "interpose"}

// goGraph gets the packages of a tree from the go command.
func goGraph(root string) (graph, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	g := make(graph)
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		name := strings.TrimPrefix(p.ImportPath, module)
		if !isShown(name) {
			continue
		}
		g[name] = nil
		for _, other := range p.Imports {
			if needed, ours := strings.CutPrefix(other, module); ours && isShown(needed) {
				g[name] = append(g[name], needed)
			}
		}
	}
	return g, nil
}

func isShown(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	return slices.Contains(shown, top)
}

var include = regexp.MustCompile(`(?m)^#\s*include\s+"([a-z]+)/[^"]+"`)

// cGraph reads the includes of the C rooms.
func cGraph(root string) (graph, error) {
	files, err := filepath.Glob(filepath.Join(root, "cshim", "*", "*.[ch]"))
	if err != nil {
		return nil, err
	}
	g := make(graph)
	var texts [][]byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
		if room := filepath.Base(filepath.Dir(file)); room != "ctest" && room != "include" {
			g[room] = nil
		}
	}
	for i, text := range texts {
		room := filepath.Base(filepath.Dir(files[i]))
		if _, known := g[room]; !known {
			continue
		}
		for _, m := range include.FindAllSubmatch(text, -1) {
			other := string(m[1])
			if _, known := g[other]; known && other != room && !slices.Contains(g[room], other) {
				g[room] = append(g[room], other)
			}
		}
	}
	return g, nil
}

// reduced leaves out what follows from other arrows. The graph has no circles, except where a C room's header is
// included from below: such an arrow is drawn as it is.
func (g graph) reduced() graph {
	r := make(graph, len(g))
	for name, needs := range g {
		r[name] = nil
		for _, other := range needs {
			implied := slices.ContainsFunc(needs, func(via string) bool {
				return via != other && g.reaches(via, other, name)
			})
			if !implied {
				r[name] = append(r[name], other)
			}
		}
		slices.Sort(r[name])
	}
	return r
}

// reaches reports whether a path leads from one room to another that avoids a third.
func (g graph) reaches(from, to, not string) bool {
	seen := map[string]bool{not: true}
	var walk func(string) bool
	walk = func(at string) bool {
		if at == to {
			return true
		}
		if seen[at] {
			return false
		}
		seen[at] = true
		return slices.ContainsFunc(g[at], walk)
	}
	return walk(from)
}

// levels puts every room above what it needs: 0 is the bottom.
func (g graph) levels() map[string]int {
	level := make(map[string]int)
	open := make(map[string]bool)
	var of func(string) int
	of = func(name string) int {
		if n, known := level[name]; known {
			return n
		}
		if open[name] {
			return 0
		}
		open[name] = true
		n := 0
		for _, other := range g[name] {
			n = max(n, of(other)+1)
		}
		level[name] = n
		return n
	}
	for name := range g {
		of(name)
	}
	return level
}
