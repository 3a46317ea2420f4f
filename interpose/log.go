package main

import (
	"os"

	"github.com/rs/zerolog"
)

// newLogger writes lines like those of the C half to the program's stderr, for levels at and above the named one; "off" silences it.
func newLogger(level string) zerolog.Logger {
	threshold, err := zerolog.ParseLevel(level)
	if err != nil || level == "" {
		threshold = zerolog.WarnLevel
	}
	if level == "off" {
		threshold = zerolog.Disabled
	}
	out := zerolog.ConsoleWriter{Out: os.Stderr, NoColor: true, PartsOrder: []string{"message"}, FormatMessage: func(m any) string {
		text, _ := m.(string)
		return "memtrace: " + text
	}}
	return zerolog.New(out).Level(threshold)
}
