package layout

import (
	"strings"

	"memtrace/internal/sanitize"
)

// ShellWord is a text from the traced program as a word of a shell command, quoted if necessary.
func ShellWord(text string) string {
	s := sanitize.Text(text)
	if !strings.ContainsAny(s, " \t\n'\"\\$&|;<>()*?[]{}~`!#") && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
