package main

import (
	"os"
	"path/filepath"
	"strings"
)

// shortPath is how people would type a path from where they are.
func shortPath(path string) string {
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

// shellWord returns text as one argument for a POSIX shell.
func shellWord(text string) string {
	if strings.HasPrefix(text, "-") {
		text = "./" + text
	}
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
