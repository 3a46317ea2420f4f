package main

import (
	"fmt"
	"os"

	"github.com/rs/zerolog"
	"golang.org/x/term"

	"memtrace/internal/visible"
)

// complain prints one error on stderr under the name of verb, as typed. Joined errors get a line each.
func (a *app) complain(verb string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			a.complain(verb, e)
		}
		return
	}
	a.tell("%s: %s", verb, visible.Text(err.Error()))
}

// say prints a line on stderr.
func (a *app) say(format string, args ...any) {
	a.tell("memtrace: %s", visible.Text(fmt.Sprintf(format, args...)))
}

// tell prints a line on stderr, in several where the terminal is narrower.
func (a *app) tell(format string, args ...any) {
	fmt.Fprintln(a.stderr, fitText(fmt.Sprintf(format, args...), terminalColumns(a.stderr)))
}

func (a *app) logLevel() zerolog.Level {
	switch {
	case a.quiet:
		return zerolog.ErrorLevel
	case a.verbose == 1:
		return zerolog.InfoLevel
	case a.verbose > 1:
		return zerolog.DebugLevel
	}
	return zerolog.WarnLevel
}

// newLogger writes lines such as "memtrace: warning: text key=value": what a terminal shows beside the program's own
// words.
func newLogger(w *os.File, level zerolog.Level) zerolog.Logger {
	words := map[string]string{"warn": "warning"}
	colour := term.IsTerminal(int(w.Fd())) && os.Getenv("NO_COLOR") == ""
	out := zerolog.ConsoleWriter{
		Out:        newFittingWriter(w, terminalColumns(w)),
		NoColor:    !colour,
		PartsOrder: []string{zerolog.LevelFieldName, zerolog.MessageFieldName},
		FormatLevel: func(v any) string {
			name, _ := v.(string)
			if word, ok := words[name]; ok {
				name = word
			}
			return "memtrace: " + name + ":"
		},
		FormatMessage: func(v any) string {
			text, _ := v.(string)
			if text = visible.Text(text); colour {
				text = "\x1b[1m" + text + "\x1b[m"
			}
			return text
		},
	}
	return zerolog.New(out).Level(level)
}
