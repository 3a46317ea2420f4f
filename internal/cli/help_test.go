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
	set.String("junit", "", "write JUnit's XML to `FILE`")
	lines := strings.Split(flagUsages(set, 80), "\n")
	if len(lines) != 2 || !strings.Contains(lines[1], " --markdown[=FILE] ") ||
		strings.Index(lines[0], "write") != strings.Index(lines[1], "write") {
		t.Errorf("%q", lines)
	}
}
