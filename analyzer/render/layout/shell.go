package layout

import (
	"strings"

	"memtrace/internal/visible"
)

// ShellWord is a text of the traced program as a word of a shell command: quoted where a shell would take it apart.
func ShellWord(text string) string {
	s := visible.Text(text)
	if !strings.ContainsAny(s, " \t\n'\"\\$&|;<>()*?[]{}~`!#") && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
