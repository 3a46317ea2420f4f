// Command genadapters makes cshim/adapterscripts.c from the scripts in cshim/adapters. Run it by `go generate ./cshim`; `make check-generate` fails when the committed
// file is stale.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// names of the frameworks' modules, in the order of enum mt_framework.
var names = []string{"torch", "mxnet", "jax"}

func main() {
	folder := flag.String("scripts", "cshim/adapters", "folder to read")
	out := flag.String("out", "cshim/adapterscripts.c", "file to write")
	flag.Parse()
	if err := run(*folder, *out); err != nil {
		fmt.Fprintln(os.Stderr, "genadapters:", err)
		os.Exit(1)
	}
}

func run(folder, out string) error {
	var code bytes.Buffer
	code.WriteString("/* Made from the scripts in adapters/ by genadapters; edit those. */\n#include \"adapter.h\"\n\nconst struct mt_adapter_script mt_adapter_scripts[MT_FRAMEWORKS] = {\n")
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(folder, name+".py"))
		if err != nil {
			return err
		}
		fmt.Fprintf(&code, "    {%s,\n", quote(name))
		for line := range strings.Lines(string(text)) {
			if kept := strings.TrimRight(line, " \n"); kept != "" && !strings.HasPrefix(strings.TrimLeft(kept, " "), "#") {
				fmt.Fprintf(&code, "     %s\n", quote(kept+"\n"))
			}
		}
		code.WriteString("    },\n")
	}
	code.WriteString("};\n")
	return os.WriteFile(out, code.Bytes(), 0o644)
}

// quote writes a string of ASCII as C does.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
