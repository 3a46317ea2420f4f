package cli

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/rs/zerolog"
	"golang.org/x/term"

	"memtrace/internal/sanitize"
)

// Console is what verbs talk to: the three standard streams and the logger, which writes to the third.
type Console struct {
	Stdin  io.Reader
	Stdout *os.File
	Stderr *os.File

	Log     zerolog.Logger
	Verbose int
	Quiet   bool

	bar *atomic.Pointer[Progress] // the one that is on the screen: of several traces that are read, one is shown
}

// NewConsole returns the console of three streams, with a logger that warns.
func NewConsole(stdin io.Reader, stdout, stderr *os.File) Console {
	return Console{Stdin: stdin, Stdout: stdout, Stderr: stderr, Log: newLogger(stderr, zerolog.WarnLevel),
		bar: new(atomic.Pointer[Progress])}
}

// SetLevel sets the logger's level.
func (c *Console) SetLevel() { c.Log = newLogger(c.Stderr, c.logLevel()) }

// Quieted returns a console that shows no progress and prints errors only.
func (c *Console) Quieted() *Console {
	quiet := *c
	quiet.Quiet = true
	quiet.SetLevel()
	return &quiet
}

// Complain prints one error on stderr under the name of verb, as typed. Joined errors get a line each.
func (c *Console) Complain(verb string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			c.Complain(verb, e)
		}
		return
	}
	c.Print("%s: %s", verb, sanitize.Text(err.Error()))
}

// Say prints a line on stderr.
func (c *Console) Say(format string, args ...any) {
	c.Print("memtrace: %s", sanitize.Text(fmt.Sprintf(format, args...)))
}

// Print prints a line on stderr, in several where the terminal is narrower.
func (c *Console) Print(format string, args ...any) {
	fmt.Fprintln(c.Stderr, FitText(fmt.Sprintf(format, args...), Columns(c.Stderr)))
}

func (c *Console) logLevel() zerolog.Level {
	switch {
	case c.Quiet:
		return zerolog.ErrorLevel
	case c.Verbose == 1:
		return zerolog.InfoLevel
	case c.Verbose > 1:
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
		Out:        NewFittingWriter(w, Columns(w)),
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
			if text = sanitize.Text(text); colour {
				text = "\x1b[1m" + text + "\x1b[m"
			}
			return text
		},
	}
	return zerolog.New(out).Level(level)
}
