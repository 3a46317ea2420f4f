package cli

import (
	"os"
	"path/filepath"
	"strings"
)

// ShortPath is a path as one would type it in the working directory.
func ShortPath(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	relative, err := filepath.Rel(here, path)
	if err != nil || len(relative) >= len(path) {
		return path
	}
	return relative
}

// ShellWord returns text as one argument for a POSIX shell.
func ShellWord(text string) string {
	if strings.HasPrefix(text, "-") {
		text = "./" + text
	}
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
