package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// personified are phrases of which earlier versions of the texts had many: programs do not speak, and rows do not
// stand.
var personified = regexp.MustCompile(`(?i)\b(is told|are told|by itself|nobody|everybody|somebody|the program says|the system says|it says|own words|stands? (above|with|before|below)|as ever\b|besides,|asked for|by the word of|past the recorder)`)

// TestLiterals: no text that the command, the recorder or the analyzer may print has such a phrase.
func TestLiterals(t *testing.T) {
	for _, root := range []string{".", "../../interpose", "../../internal/cli", "../../internal/cli",
		"../../internal/launch", "../../internal/cli", "../../internal/cli",
		"../../internal/tracefile", "../../internal/top", "../../analyzer"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if field, ok := n.(*ast.Field); ok && field.Tag != nil {
					return false
				}
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
					if m := personified.FindString(text.Value); m != "" {
						t.Errorf("%s: %q in %s", set.Position(text.Pos()), m, text.Value)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
