package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"memtrace/internal/cli"
	"memtrace/internal/diff"
	"memtrace/internal/page"
	"memtrace/internal/rewrite"
	"memtrace/internal/sanitize"
	"memtrace/internal/spool"
	"memtrace/internal/tracefile"
	"memtrace/internal/version"
)

const htmlLong = `Write the report as one HTML page: the answer, memory over time, and what held it at
any moment, with call stacks, the largest blocks and a map of the allocator's memory.
Of two traces, the page shows what changed, as 'memtrace diff' does; of the ranks of a
run, in a folder or as files, which ranks differ. It loads nothing from the network, so
it can be attached to an issue.`

const htmlDetails = `The page is written beside the trace, or the second one, as TRACE.html, that of two
traces as TRACE.diff.html, that of ranks as FOLDER.html, or of files as ranks.html,
unless -o names another file; '-o -' is standard output.
Without scripts it still shows the report. It names files and functions of the
program, as the report does, and contains none of their text. --no-source replaces
these names, and those of tags and marks, by pseudonyms, as 'memtrace anonymize' does
for a trace.

Blocks beyond --blocks are left out, and the page states this; --full holds every one.
'memtrace serve' shows the same page of traces of any size.

`

const htmlExample = `  memtrace html memtrace.python3.4711.bin
  memtrace html --focus attn -o attention.html memtrace.python3.4711.bin
  memtrace html before.bin after.bin
  memtrace html traces/`

const (
	pageExtension     = ".html"
	diffPageExtension = ".diff.html"
)

type htmlFlags struct {
	filters  cli.QueryFlags
	blocks   int
	full     bool
	noSource bool
	output   string
	force    bool

	blocksGiven bool
}

func htmlCommand(a *app) *cobra.Command {
	var flags htmlFlags
	cmd := &cobra.Command{
		Use:     "html [flags] FILE | BASE NEW | DIR|FILE...",
		Short:   "Write the report, what changed between two traces, or the ranks of a run as a page",
		Long:    htmlLong,
		Example: htmlExample,
		Annotations: map[string]string{
			cli.DetailsFlag: htmlDetails + cli.WindowHelp + "\n\n" + cli.FilterHelp,
		},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.UsageErrorf("name one trace, two to compare, or the ranks of a run")
			}
			return nil
		},
		ValidArgsFunction: cli.CompleteTraces,
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.blocksGiven = cmd.Flags().Changed("blocks")
			if inputs := sideBySide(args); inputs != nil && (len(args) != 2 || len(inputs) != 2 || oneRun(inputs)) {
				return a.htmlRanks(&flags, args, inputs)
			}
			switch len(args) {
			case 1:
				return a.html(&flags, args[0])
			case 2:
				return a.htmlDiff(&flags, args[0], args[1])
			}
			if _, err := tracefile.Expand(args); err != nil {
				return err
			}
			return cli.UsageErrorf("name one trace, two to compare, or ranks of a run; got %d traces without ranks",
				len(args))
		},
	}
	f := cmd.Flags()
	flags.filters.Window.Define(cmd)
	flags.filters.DefineFilters(cmd)
	f.IntVar(&flags.blocks, "blocks", page.DefaultBlocks,
		"hold at most this number of `BLOCKS`, those that held most for longest")
	f.BoolVar(&flags.full, "full", false, "hold every block")
	f.BoolVar(&flags.noSource, "no-source", false,
		"replace the program's names by pseudonyms")
	f.StringVarP(&flags.output, "output", "o", "",
		"write to this `FILE`; -: to standard output (default: beside the trace)")
	f.BoolVarP(&flags.force, "force", "f", false, "replace that file if it exists")
	cli.CompleteFlag(cmd, "blocks", cli.CompleteValues())
	cli.GroupFlags(cmd, cli.GroupWhat, "blocks", "full", "no-source")
	cli.GroupFlags(cmd, cli.Output, "output", "force")
	return cmd
}

func (a *app) html(flags *htmlFlags, arg string) error {
	if flags.blocks < 1 {
		return cli.UsageErrorf("--blocks %d: must be at least 1", flags.blocks)
	}
	if flags.full {
		if flags.blocksGiven {
			return cli.UsageErrorf("--full holds every block: leave out --blocks")
		}
		flags.blocks = math.MaxInt32 // events are numbered in 32 bits
	}
	options, err := flags.filters.PageOptions(flags.blocks)
	if err != nil {
		return err
	}
	read, done, err := flags.sources(a, arg)
	defer done()
	if err != nil {
		return err
	}
	path, err := tracefile.One(arg)
	if err != nil {
		return err
	}
	summary, err := tracefile.Summarize(&a.Console, read[0], options)
	if err != nil {
		return err
	}
	about := page.Options{Path: filepath.Base(path), Writer: "memtrace " + version.String}
	return a.writePage(flags, pageName(path, pageExtension), func(w io.Writer) error {
		return page.Write(w, summary, about)
	})
}

// htmlDiff writes the page of what changed between two traces.
func (a *app) htmlDiff(flags *htmlFlags, basePath, newPath string) error {
	if flags.full || flags.blocksGiven {
		return cli.UsageErrorf("--blocks and --full are for the page of one trace: that of a difference holds no blocks")
	}
	compared := diffFlags{QueryFlags: flags.filters}
	compared.Entries = -1
	options, err := compared.Options()
	if err == nil {
		err = compared.requestDefaults(&options)
	}
	if err != nil {
		return err
	}
	options.HistoryBlocks = flags.blocks
	read, done, err := flags.sources(a, basePath, newPath)
	defer done()
	if err != nil {
		return err
	}
	result, err := a.difference(&compared, options, nil, read[0], read[1], true)
	if err != nil {
		return err
	}
	for i, side := range []*diff.Side{&result.diff.Base, &result.diff.New} {
		if side.Path, err = tracefile.One([]string{basePath, newPath}[i]); err != nil {
			return err
		}
	}
	about := page.Options{Writer: "memtrace " + version.String}
	return a.writePage(flags, pageName(result.diff.New.Path, diffPageExtension), func(w io.Writer) error {
		return page.WriteDiff(w, result.diff, result.summaries[0], result.summaries[1], about)
	})
}

// pageName is the default path of a trace's page.
func pageName(path, extension string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, spool.Extension), tracefile.Suffix) + extension
}

func (a *app) writePage(flags *htmlFlags, output string, write func(io.Writer) error) error {
	if flags.output != "" {
		output = flags.output
	}
	if err := a.WriteTo(output, flags.force, sanitize.Bytes, write); err != nil {
		return err
	}
	if output != "-" && !a.Quiet {
		a.Say("wrote %s: open it in a browser", output)
	}
	return nil
}

// pseudonymous makes anonymized copies of traces for as long as a page is made of them. The same name has the same
// pseudonym in all of them, and no name can be found by trial: the key is discarded.
type pseudonymous struct {
	dir string
	key []byte
}

func newPseudonymous() (*pseudonymous, error) {
	dir, err := os.MkdirTemp("", "memtrace-html-")
	if err != nil {
		return nil, fmt.Errorf(
			"make a folder for the trace without names: %w; set TMPDIR to a folder that can be written", err)
	}
	p := &pseudonymous{dir: dir, key: make([]byte, rewrite.MinKey)}
	_, _ = rand.Read(p.key) // never fails: see crypto/rand
	return p, nil
}

func (p *pseudonymous) remove() { _ = os.RemoveAll(p.dir) }

// copy returns the path of a copy. number distinguishes copies of one name.
func (p *pseudonymous) copy(a *app, path string, number int) (string, error) {
	source, closeSource, err := tracefile.OpenPlain(&a.Console, path, false)
	if err != nil {
		return "", err
	}
	defer closeSource()
	folder := filepath.Join(p.dir, fmt.Sprint(number))
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", err
	}
	edit, err := rewrite.NewAnonymizer(rewrite.Strip{KeepSymbols: true, KeepLines: true,
		Counts: make(rewrite.Counts)}, p.key)
	if err != nil {
		return "", err
	}
	to := filepath.Join(folder, filepath.Base(path))
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	if err = errors.Join(editTrace(file, source, edit), file.Close()); err != nil {
		return "", fmt.Errorf("%s: %w", path, cli.WriteError(file, "a temporary file in "+p.dir, err))
	}
	return to, nil
}

// sources are the traces that a page is made of: those that were named, or with --no-source copies without names. The
// caller calls done.
func (f *htmlFlags) sources(a *app, named ...string) (read []string, done func(), err error) {
	done = func() {}
	var copies *pseudonymous
	if f.noSource {
		if copies, err = newPseudonymous(); err != nil {
			return nil, done, err
		}
		done = copies.remove
	}
	for i, arg := range named {
		path, err := tracefile.One(arg)
		if err == nil && f.noSource {
			path, err = copies.copy(a, path, i)
		}
		if err != nil {
			return nil, done, err
		}
		read = append(read, path)
	}
	return read, done, nil
}
