package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"memtrace/analyzer/page"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/rules/rulefile"
	"memtrace/internal/version"
	"memtrace/internal/visible"
	"memtrace/trace/spool"
)

const htmlLong = `Write the report as one HTML file: the answer, memory over time, and for any
moment who held it, with call stacks and the largest blocks. The page asks the
network for nothing, so that it can be attached to an issue or opened from a
folder. Without scripts it still shows the report.

The file lies beside the trace, under its name with the ending .html, unless -o
names another one; '-o -' is standard output. A page names files and functions
of the program, as the report does: 'memtrace anonymize' makes a trace without
them.

%s`

const htmlExample = `  memtrace html memtrace.python3.4711.bin
  memtrace html --focus attn -o attention.html memtrace.python3.4711.bin`

const pageExtension = ".html"

type htmlFlags struct {
	filters summaryFlags
	blocks  int
	output  string
	force   bool
}

func (a *app) htmlCommand() *cobra.Command {
	var flags htmlFlags
	cmd := &cobra.Command{
		Use:     "html [flags] FILE",
		Short:   "Write the report as one HTML page, with memory over time",
		Long:    fmt.Sprintf(htmlLong, windowHelp+"\n\n"+filterHelp),
		Example: htmlExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("name one trace; got %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: completeTraces,
		RunE:              func(_ *cobra.Command, args []string) error { return a.html(&flags, args[0]) },
	}
	f := cmd.Flags()
	flags.filters.window.define(cmd)
	flags.filters.defineFilters(cmd)
	f.IntVar(&flags.blocks, "blocks", page.DefaultBlocks, "hold at most this number of `BLOCKS`, those that held most for longest; about 7 bytes of file each")
	f.StringVarP(&flags.output, "output", "o", "", "write to a `FILE`, - for standard output (default: beside the trace)")
	f.BoolVarP(&flags.force, "force", "f", false, "replace that file if it exists")
	mustComplete(cmd, "blocks", completeValues())
	return cmd
}

func (a *app) html(flags *htmlFlags, arg string) error {
	if flags.blocks < 1 {
		return usagef("--blocks %d: must be at least 1", flags.blocks)
	}
	options, err := flags.filters.options()
	if err != nil {
		return err
	}
	set, err := rulefile.Open(rulefile.Default)
	if err != nil {
		return err
	}
	options.Sites, options.Training, options.HistoryBlocks = true, true, flags.blocks
	options.RuleSets = []profile.RuleGrouping{{Name: byCategory, Rules: set}}
	path, err := oneInput(arg)
	if err != nil {
		return err
	}
	output := flags.output
	if output == "" {
		output = strings.TrimSuffix(strings.TrimSuffix(path, spool.Extension), traceSuffix) + pageExtension
	}
	summary, err := a.summarize(path, options)
	if err != nil {
		return err
	}
	about := page.Options{Path: filepath.Base(path), Writer: "memtrace " + version.String}
	if err := a.writeTo(output, flags.force, visible.Bytes, func(w io.Writer) error { return page.Write(w, summary, about) }); err != nil {
		return err
	}
	if output != "-" && !a.quiet {
		a.say("wrote %s: open it in a browser", output)
	}
	return nil
}
