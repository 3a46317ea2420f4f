package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"memtrace/internal/cli"
	"memtrace/internal/rewrite"
	"memtrace/internal/safefile"
	"memtrace/internal/sanitize"
	"memtrace/internal/tracefile"
	"memtrace/trace"
)

const stripLong = `Write a copy of a trace without what is not needed to read it elsewhere: embedded
symbols, Python's line tables, the environment, the working directory, the host's name
and arguments. Paths are shortened. Names of the program's own functions, files, tags
and threads stay: 'memtrace anonymize' replaces them. Events and numbers stay as they
are.`

const stripDetails = `Paths of object files become their base names; paths of Python files become what follows
site-packages or the standard library's folder, or their last two parts. Without line
tables a report distinguishes call sites in Python by their functions alone; --keep
lines keeps them. Addresses in stacks and of Python objects stay as they are. Parts of a file
that this version does not know are left out, since they may contain anything, and so is
what follows damage. What was left out or replaced is counted on standard error.`

const stripExample = `  memtrace strip memtrace.python3.4711.bin -o small.bin
  memtrace strip --keep symbols,lines memtrace.python3.4711.bin -o shared.bin`

const anonymizeLong = `Write a copy of a trace whose names are replaced by pseudonyms: tags, marks, threads,
the program and its own libraries, and files and functions of code that belongs neither
to CPython nor to a package in site-packages nor to the system. What 'memtrace strip'
removes is removed as well. Events and numbers stay as they are, so a report of the copy
has the same figures. With --key, a name has the same pseudonym in several traces.`

const anonymizeDetails = `Packages in site-packages keep their names, whoever wrote them. Unlike strip, anonymize
keeps what the figures of call sites need: symbols, with the program's own replaced, and
Python's line tables, which are numbers; --keep chooses among these. What stays:
sizes, times, process and thread numbers, lines at which functions begin, and the
addresses in stacks and of Python objects.

A name has the same pseudonym throughout the file; with --key, across files. Only with
the key can one test whether a pseudonym is that of a certain name. Without --key a
random key is used and not kept. Parts of a file that this version does not know are
left out, since they may contain anything, and so is what follows damage. What was left
out or replaced is counted on standard error.`

const anonymizeExample = `  memtrace anonymize memtrace.python3.4711.bin -o public.bin
  head -c 32 /dev/urandom > secret.key
  memtrace anonymize --key secret.key before.bin -o a.bin
  memtrace anonymize --key secret.key after.bin -o b.bin
  memtrace diff a.bin b.bin`

// The parts that a copy may do without.
const (
	keepSymbols = "symbols"
	keepLines   = "lines"
	keepNothing = "nothing"
)

type scrubOptions struct {
	copyFlags
	keep []string
	key  string
}

func stripCommand(a *app) *cobra.Command {
	var o scrubOptions
	cmd := &cobra.Command{
		Use:         "strip [flags] FILE -o OUT",
		Short:       "Write a copy without paths, environment, arguments and symbols",
		Long:        stripLong,
		Annotations: map[string]string{cli.DetailsFlag: stripDetails},
		Example:     stripExample,
		RunE:        func(_ *cobra.Command, args []string) error { return a.scrub(o, args[0], false) },
	}
	o.register(cmd, nil)
	return cmd
}

func anonymizeCommand(a *app) *cobra.Command {
	var o scrubOptions
	cmd := &cobra.Command{
		Use:         "anonymize [flags] FILE -o OUT",
		Short:       "Write a copy with your names replaced by pseudonyms",
		Long:        anonymizeLong,
		Annotations: map[string]string{cli.DetailsFlag: anonymizeDetails},
		Example:     anonymizeExample,
		RunE:        func(_ *cobra.Command, args []string) error { return a.scrub(o, args[0], true) },
	}
	o.register(cmd, []string{keepSymbols, keepLines})
	cmd.Flags().StringVar(&o.key, "key", "",
		fmt.Sprintf("make pseudonyms with the secret in this `FILE`, of at least %d bytes", rewrite.MinKey))
	return cmd
}

// register sets what both verbs share. keep lists what is kept by default.
func (o *scrubOptions) register(cmd *cobra.Command, keep []string) {
	cmd.ValidArgsFunction, cmd.Args = cli.CompleteTraces, cli.OneTrace
	o.copyFlags.define(cmd)
	cmd.Flags().StringSliceVar(&o.keep, "keep", keep, "keep these `PARTS`: "+keepSymbols+
		" (embedded names of code), "+keepLines+" (Python's line tables), or "+keepNothing)
	cli.CompleteFlag(cmd, "keep", cli.CompleteList(keepSymbols, keepLines, keepNothing))
}

func (a *app) scrub(o scrubOptions, arg string, anonymize bool) error {
	strip, err := o.strip()
	if err != nil {
		return err
	}
	var edit trace.Editor = strip
	if anonymize {
		if edit, err = o.anonymizer(strip); err != nil {
			return err
		}
	}
	return a.copyTrace(arg, o.copyFlags, sanitize.Bytes, false,
		func(w io.Writer, source trace.Source, _ string) (string, error) {
			err := editTrace(w, source, edit)
			return describeCounts(source.Health(), strip.Counts), err
		})
}

func (o scrubOptions) strip() (*rewrite.Strip, error) {
	s := &rewrite.Strip{Counts: make(rewrite.Counts)}
	for _, part := range o.keep {
		switch part {
		case keepSymbols:
			s.KeepSymbols = true
		case keepLines:
			s.KeepLines = true
		case keepNothing:
			if len(o.keep) > 1 {
				return nil, cli.UsageErrorf("--keep %s: %s cannot be combined with other parts",
					strings.Join(o.keep, ","), keepNothing)
			}
		default:
			return nil, cli.UsageErrorf("--keep %s: choose from %s, %s, %s", part, keepSymbols, keepLines, keepNothing)
		}
	}
	return s, nil
}

// maxKey bounds what is read of a key file.
const maxKey = 1 << 20

func (o scrubOptions) anonymizer(strip *rewrite.Strip) (*rewrite.Anonymizer, error) {
	if o.key == "" {
		return rewrite.NewAnonymizer(*strip, nil)
	}
	key, err := safefile.Read(o.key, maxKey)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file; make a key with: head -c 32 /dev/urandom > %s", o.key, o.key)
	case errors.Is(err, safefile.ErrTooLarge):
		return nil, fmt.Errorf("%s: a key file is at most %d bytes", o.key, maxKey)
	case err != nil:
		return nil, tracefile.OpenError(o.key, err)
	}
	made, err := rewrite.NewAnonymizer(*strip, key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; make one with: head -c 32 /dev/urandom > %s", o.key, err, o.key)
	}
	return made, nil
}

// describeCounts lists what was removed or replaced.
func describeCounts(h trace.Health, counts rewrite.Counts) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[what], what))
	}
	if h.SkippedSections > 0 {
		parts = append(parts, fmt.Sprintf("%d sections of unknown kind left out", h.SkippedSections))
	}
	if h.UnknownEvents > 0 {
		parts = append(parts, fmt.Sprintf("%d events of unknown kind left out", h.UnknownEvents))
	}
	if parts == nil {
		return "nothing had to be left out or replaced"
	}
	return strings.Join(parts, ", ")
}
