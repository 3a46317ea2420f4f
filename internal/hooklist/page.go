package hooklist

import (
	"fmt"
	"slices"
	"strings"
)

const pageHead = `# What is hooked, and what is not

Every CUDA function that creates, frees, maps, opens or ends memory is hooked, as exported symbol, through ` + "`dlsym`" + ` with handles and pseudo handles, ` + "`cuGetProcAddress`" + ` in both forms and ` + "`cudaGetDriverEntryPoint`" + `, also in statically linked runtimes. ` + "`go generate ./internal/hooklist`" + ` makes this page from ` + "`cshim/hooks.def`" + `, the headers of CUDA 11.8, 12.9 and 13.5 (` + "`testdata/headers/cuda.txt`" + `) and ` + "`testdata/headers/rules.txt`" + `; a test fails when it is stale, or no rule covers a function. Limits:

- ` + "`dlvsym`" + ` bypasses the hooks of the runtime's functions: the driver calls are recorded without the runtime's name.
- A library loaded with ` + "`RTLD_DEEPBIND`" + ` binds its own CUDA functions, and a second CUDA in a namespace of its own (` + "`dlmopen`" + `) is not hooked. A message reports a process in which nothing was seen.
- A newer version of a driver function than those here is passed through and named in the trace (` + "`unhooked.NAME`" + `).
- Tiles of a sparse array and bindings of a multicast object that are never unmapped stay counted after it has ended; a region of tiles counts as mapped until a change that begins at the same place.
- Variables of modules and libraries whose context ends while their device has another one stay counted until they are unloaded.
- An imported handle counts from its first mapping, which gives its size.
`

// Page writes docs/hooks.md.
func Page(hooks, declared []Function, rules Rules) string {
	var b strings.Builder
	b.WriteString(pageHead)
	b.WriteString("\n## Not hooked\n\n| function | why |\n|---|---|\n")
	for _, row := range leftRows(hooks, declared, rules) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.Join(row.names, "` `"), row.reason)
	}
	var driver, names []string
	for _, h := range hooks {
		switch h.Level {
		case Driver:
			driver = append(driver, fmt.Sprintf("`%s` %d.%d", h.Symbol, h.Version/1000, h.Version%1000/10))
		case Runtime:
			names = append(names, "`"+h.Symbol+"`")
		}
	}
	b.WriteString("\n## Hooked\n\nFunctions of the driver, with the first CUDA version for which `cuGetProcAddress` returns this ABI for the " +
		"name; those in `_ptsz` are for per-thread default\nstreams.\n" + wrap(driver) + "\n")
	slices.Sort(names)
	b.WriteString("\nHooked functions of the runtime, whose names label the driver's events:\n" + wrap(names) + "\n")
	return b.String()
}

type leftRow struct {
	names  []string
	reason string
}

// leftRows lists the declared functions that are not hooked, by reason in the order of the rules.
func leftRows(hooks, declared []Function, rules Rules) (rows []leftRow) {
	hooked := map[string]bool{}
	for _, h := range hooks {
		hooked[h.Symbol] = true
	}
	by := map[*Rule][]string{}
	for _, f := range declared {
		if rule := rules.Find(f.Symbol); rule != nil && rule.Class == Left && !hooked[f.Symbol] &&
			!slices.Contains(by[rule], f.Symbol) {
			by[rule] = append(by[rule], f.Symbol)
		}
	}
	for _, rule := range rules {
		if names := by[rule]; len(names) > 0 {
			slices.Sort(names)
			rows = append(rows, leftRow{names, rule.Reason})
		}
	}
	return rows
}

// wrap sets words into lines of at most 160 columns.
func wrap(words []string) string {
	var b strings.Builder
	column := 160
	for i, word := range words {
		if i < len(words)-1 {
			word += ","
		} else {
			word += "."
		}
		if column+1+len(word) > 160 {
			b.WriteString("\n" + word)
			column = len(word)
			continue
		}
		b.WriteString(" " + word)
		column += 1 + len(word)
	}
	return b.String()
}
