// Package top is the live view of devices, the processes on them and the owners of recorded ones' memory: as a screen,
// as text or JSON once, and as metrics.
package top

import (
	"io"
	"math"
	"os"
	"strings"

	"github.com/rs/zerolog"
	"golang.org/x/term"

	"memtrace/internal/sanitize"
	"memtrace/internal/symbol"
)

// Host is what the command lends the view. All fields are needed but those that say otherwise.
type Host struct {
	Stdin  io.Reader
	Stdout *os.File
	Log    zerolog.Logger
	Quiet  bool

	// a line on standard error
	Say func(format string, args ...any)
	// an error on the command line
	Usage func(format string, args ...any) error
	// replaces a file in one step; "": standard output
	WriteTo func(path string, force bool, form sanitize.Form, produce func(io.Writer) error) error
	// the traces that an argument names: a file, or all in a folder
	Traces func(arg string) ([]string, error)
	// why a trace cannot be opened, in words
	OpenError func(path string, err error) error
	// as one would type it here
	ShortPath func(path string) string
	// columns of what is printed once
	Width func(terminal bool) int

	Symbols symbol.Options
	Own     []string // patterns of files that are the user's own

	// Bookmarks is the folder in which views keep how far they read the traces of programs that run; "": they do not
	Bookmarks string
}

// Run shows the processes, in the form that o selects, until the user ends it. args name traces and folders of traces
// beyond those of this user's processes.
func (h *Host) Run(o *Options, args []string) error {
	if err := o.check(h); err != nil {
		return err
	}
	for _, arg := range args {
		if _, err := os.Stat(arg); err != nil {
			if _, err := h.Traces(arg); err != nil {
				return err
			}
		}
	}
	sampler := newSampler(h, o, args)
	defer sampler.close()
	if o.metrics() {
		return h.publishMetrics(sampler, o)
	}
	terminal := term.IsTerminal(int(h.Stdout.Fd()))
	if o.JSON || o.Once || !terminal || os.Getenv("TERM") == "dumb" {
		return h.printOnce(sampler, o, terminal)
	}
	return h.fillScreen(sampler, o)
}

// printOnce reads every trace to its present end and prints what there is.
func (h *Host) printOnce(sampler *sampler, o *Options, terminal bool) error {
	sample := sampler.sample(math.MaxInt64)
	form := sanitize.Lines
	if o.JSON {
		form = sanitize.JSON
	}
	return h.WriteTo("", false, form, func(w io.Writer) error {
		if o.JSON {
			return writeJSON(w, sample)
		}
		page := page{sample: sample, width: h.Width(terminal), rows: o.Rows, ascii: o.ASCII, open: func(int) bool {
			return true
		}}
		for _, line := range page.lines() {
			if _, err := io.WriteString(w, strings.TrimRight(line.text(false), " ")+"\n"); err != nil {
				return err
			}
		}
		return nil
	})
}
