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
		"torch/modules.py", "torch/looks.py",
		"torch/gradients.py", "torch/states.py", "torch/optimizers.py", "torch/steps.py", "torch/start.py",
	}},
	{"mxnet", []string{
		"mxnet/framework.py", "mxnet/memory.py", "mxnet/rows.py", "mxnet/states.py", "mxnet/looks.py", "mxnet/steps.py",
		"mxnet/follow.py", "mxnet/start.py",
	}},
	{"jax", []string{"jax.py"}},
}

// referrers are the files of the search for what refers to tensors: those of the package, and what asks for it.
var referrers = []string{"../../python/memtrace/_paths.py", "../../python/memtrace/_referrers.py", "referrers.py"}

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
	code.WriteString("};\n\nconst char mt_held_script[] =\n")
	if err := add(&code, filepath.Join(folder, "held.py")); err != nil {
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

// isOwnImport matches imports of what stands in the same script, and what only its first line may say.
var isOwnImport = regexp.MustCompile(`^from (\._\w+|__future__) import `)

// add writes a file's lines but for those that say nothing to the interpreter.
func add(code *bytes.Buffer, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if kept := strings.TrimRight(line, " \n"); kept != "" && !strings.HasPrefix(strings.TrimLeft(kept, " "), "#") &&
			!isOwnImport.MatchString(kept) {
			fmt.Fprintf(code, "     %s\n", quote(kept+"\n"))
		}
	}
	return nil
}

// quote writes a string of ASCII as C does.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
