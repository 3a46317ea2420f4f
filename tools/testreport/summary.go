package main

import (
	"fmt"
	"io"
	"strings"
)

// screens is how many lines a summary has for differences. If so much failed that all of it would be longer, each has
// its share.
const screens = 400

// summarize prints the failures of a file; if there are none, nothing.
func summarize(path string, out io.Writer) error {
	failures, err := readFailures(path)
	if err != nil || len(failures) == 0 {
		return err
	}
	fmt.Fprintf(out, "==== failed: %d\n", len(failures))
	share := max(8, screens/len(failures))
	for _, f := range failures {
		fmt.Fprintln(out)
		f.print(out, share)
	}
	return nil
}

func (f failure) print(out io.Writer, most int) {
	if f.Part != "" {
		fmt.Fprint(out, f.Part, ": ")
	}
	fmt.Fprintln(out, f.Name)
	indented(out, "    ", strings.Split(f.Claim, "\n"))
	indented(out, "        ", cut(f.Difference, most))
	for _, path := range f.Recordings {
		fmt.Fprintln(out, "    recording:", path)
	}
	fmt.Fprintln(out, "    alone:", f.Alone)
}

func indented(out io.Writer, margin string, lines []string) {
	for _, line := range lines {
		if line != "" {
			fmt.Fprintf(out, "%s%s\n", margin, line)
		}
	}
}
