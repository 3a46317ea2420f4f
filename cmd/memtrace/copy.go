package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"memtrace/internal/cli"
	"memtrace/internal/sanitize"
	"memtrace/internal/tracefile"
	"memtrace/trace"
)

// copyFlags are what the verbs share that make a trace of a file, or a text of a trace: strip, anonymize, compact,
// import and dump.
type copyFlags struct {
	output string
	force  bool
}

func (f *copyFlags) define(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVarP(&f.output, "output", "o", "", "write to this `FILE` instead of standard output")
	set.BoolVarP(&f.force, "force", "f", false, "replace that file if it exists")
}

// writeCopy writes what write makes of an input, which the output must not replace. Errors name the input unless they
// are of the output.
func (a *app) writeCopy(input string, to copyFlags, form sanitize.Form, write func(io.Writer) error) error {
	if err := tracefile.RefuseSame(input, to.output); err != nil {
		return err
	}
	return a.WriteTo(to.output, to.force, form, func(w io.Writer) error {
		if err := write(w); err != nil {
			return fmt.Errorf("%s: %w", input, err)
		}
		return nil
	})
}

// copyTrace is writeCopy for a trace, or for the one in a folder. partly: only some of its events are read. When the
// output is complete, it prints what write returned, and what is missing because the trace is damaged.
func (a *app) copyTrace(arg string, to copyFlags, form sanitize.Form, partly bool,
	write func(w io.Writer, source trace.Source, path string) (done string, err error)) error {
	path, err := tracefile.One(arg)
	if err != nil {
		return err
	}
	source, closeSource, err := tracefile.OpenPlain(&a.Console, path, partly)
	if err != nil {
		return err
	}
	defer closeSource()
	var done string
	err = a.writeCopy(path, to, form, func(w io.Writer) (err error) {
		done, err = write(w, source, path)
		return err
	})
	if err != nil || a.Quiet {
		return err
	}
	if done != "" {
		a.Say("%s", done)
	}
	h := source.Health()
	if h.Torn.Stretches > 0 {
		a.Say("%s is damaged at offset %d (%s); the output lacks %d bytes", path, h.Torn.At, h.Torn.Reason,
			h.Torn.Bytes)
	}
	if h.Truncated {
		a.Say("%s is cut at offset %d (%s); the output ends there", path, h.TruncatedAt, h.Reason)
	}
	return nil
}

// editTrace writes a copy of a trace as edit has it.
func editTrace(w io.Writer, source trace.Source, edit trace.Editor) error {
	out, err := trace.NewWriter(w, trace.WriterOptions{})
	if err != nil {
		return err
	}
	return trace.Copy(out, source, edit)
}

// temporaryFile makes a file without a name in a folder, "" for the system's, which ends with the command.
func temporaryFile(folder string) (*os.File, error) {
	file, err := os.CreateTemp(folder, ".memtrace-")
	if err == nil {
		err = os.Remove(file.Name())
	}
	if err != nil {
		return nil, fmt.Errorf("make a temporary file: %w; TMPDIR names the folder for it", cli.WithoutPath(err))
	}
	return file, nil
}
