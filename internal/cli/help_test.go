package cli

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// A value that may be left out was shown as --markdown FILE[="-"], which nobody can type.
func TestOptionalValuesAreShownAsTyped(t *testing.T) {
	set := pflag.NewFlagSet("x", pflag.ContinueOnError)
	set.String("markdown", "", "write a table to `FILE`")
	set.Lookup("markdown").NoOptDefVal = "-"
	set.Bool("all", false, "all of them")
	set.String("junit", "", "write JUnit's XML to `FILE`")
	lines := strings.Split(flagUsages(set, 80), "\n")
	want := []string{"      --all               all of them", "      --junit FILE        write JUnit's XML to FILE",
		"      --markdown[=FILE]   write a table to FILE"}
	for i, line := range lines {
		if line != want[i] {
			t.Errorf("%q, want %q", line, want[i])
		}
	}
	if flags := set.Lookup("markdown"); flags.NoOptDefVal != "-" {
		t.Error("the flag itself has changed")
	}
}
