// Command genadapters writes the scripts in cshim/adapters as one C file for the library. The rule in cshim/cshim.mk
// runs it.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// scripts in the order of enum mt_framework: the name of a framework's module, and the files that are its script, one
// after the other.
var scripts = []struct {
	name  string
	files []string
}{
	{"torch", []string{
		"torch/framework.py", "torch/reading.py", "torch/memory.py", "torch/rows.py", "torch/variables.py",
		"torch/modules.py", "torch/scans.py",
		"torch/gradients.py", "torch/states.py", "torch/optimizers.py", "torch/steps.py", "torch/start.py",
	}},
	{"mxnet", []string{
		"mxnet/framework.py", "mxnet/memory.py", "mxnet/rows.py", "mxnet/states.py", "mxnet/scans.py", "mxnet/steps.py",
		"mxnet/follow.py", "mxnet/start.py",
	}},
	{"jax", []string{"jax.py"}},
}

// referrers are the files of the search for what refers to tensors: those of the package, and its caller.
var referrers = []string{"../../python/memtrace/_paths.py", "../../python/memtrace/_freed.py",
	"../../python/memtrace/_ways.py", "../../python/memtrace/_referrers.py", "referrers.py"}

func main() {
	folder := flag.String("scripts", "cshim/adapters", "folder to read")
	out := flag.String("out", "build/cshim/adapters/scripts.c", "file to write")
	flag.Parse()
	if err := run(*folder, *out); err != nil {
		fmt.Fprintln(os.Stderr, "genadapters:", err)
		os.Exit(1)
	}
}

func run(folder, out string) error {
	var code bytes.Buffer
	code.WriteString(
		"/* Made from the scripts in cshim/adapters by genadapters; edit those. */\n#include \"adapters/adapter.h\"\n\nconst struct mt_adapter_script mt_adapter_scripts[MT_FRAMEWORKS] = {\n")
	for _, script := range scripts {
		fmt.Fprintf(&code, "    {%s,\n", quote(script.name))
		for _, file := range script.files {
			if err := add(&code, filepath.Join(folder, file)); err != nil {
				return err
			}
		}
		code.WriteString("    },\n")
	}
	code.WriteString("};\n\nconst char mt_snapshot_script[] =\n")
	if err := add(&code, filepath.Join(folder, "snapshot.py")); err != nil {
		return err
	}
	code.WriteString("    ;\n\nconst char mt_referrers_script[] =\n")
	fmt.Fprintf(&code, "     %s\n", quote("from __future__ import annotations\n"))
	for _, file := range referrers {
		if err := add(&code, filepath.Join(folder, file)); err != nil {
			return err
		}
	}
	code.WriteString("    ;\n")
	return os.WriteFile(out, code.Bytes(), 0o644)
}

// isOwnImport matches imports of what is in the same script or comes from the library, which are for checkers, and what
// only a script's first line may have.
var isOwnImport = regexp.MustCompile(`^from (\.{1,2}\w+|memtrace\._\w+|__future__) import `)

// add writes a file's lines without comments, blank lines and imports of its own script.
func add(code *bytes.Buffer, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	inImport := false // of several lines
	for line := range strings.Lines(string(text)) {
		kept := strings.TrimRight(line, " \n")
		switch {
		case inImport:
			inImport = kept != ")"
		case isOwnImport.MatchString(kept):
			inImport = strings.HasSuffix(kept, "(")
		case kept != "" && !strings.HasPrefix(strings.TrimLeft(kept, " "), "#"):
			fmt.Fprintf(code, "     %s\n", quote(kept+"\n"))
		}
	}
	return nil
}

// quote writes a string of ASCII as C does.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
