package main

import (
	"strings"

	"github.com/spf13/cobra"

	"memtrace/internal/cli"
	"memtrace/internal/control"
	"memtrace/internal/profile"
	"memtrace/internal/top"
	"memtrace/internal/tracefile"
)

const topLong = `Show devices, the processes on them and, of those that memtrace records, what holds
their memory now. On a terminal the view fills the screen: q quits, ? lists the other
keys. Elsewhere, and with --once, it is printed once.`

const topDetails = `Recorded processes of this user are found automatically; where MEMTRACE_CONTROL_DIR is
set, by the control sockets in that folder. Of other processes the memory is shown, not
its owners. FILE and DIR name further traces, such as those of a process of another user
that may be read. Devices and the processes on them come from NVML. On a machine without
it, recorded processes are still shown.

--listen and --textfile show nothing but publish the same figures as metrics, for
Prometheus and others: at http://ADDRESS/metrics, or in a file that is replaced every
--interval. Only processes of this user, and those of FILE and DIR, have owners there.`

const topExample = `  memtrace top
  memtrace top --once
  memtrace top --device 0 --by library --interval 5s
  memtrace top --json | jq '.processes[].owners.rows[0]'
  memtrace top --listen 127.0.0.1:9464
  memtrace top --textfile /var/lib/node_exporter/textfile/memtrace.prom`

func topCommand(a *app) *cobra.Command {
	o := top.Options{Interval: top.MinInterval}
	cmd := &cobra.Command{
		Use:               "top [flags] [FILE|DIR...]",
		Short:             "Show devices, their processes and what holds memory, live",
		Long:              topLong,
		Annotations:       map[string]string{cli.DetailsFlag: topDetails},
		Example:           topExample,
		ValidArgsFunction: cli.CompleteTraces,
		RunE: func(cmd *cobra.Command, args []string) error {
			control.Sweep()
			o.IntervalGiven = cmd.Flags().Changed("interval")
			return a.topHost().Run(&o, args)
		},
	}
	defineTopFlags(cmd, &o)
	return cmd
}

func defineTopFlags(cmd *cobra.Command, o *top.Options) {
	flags := cmd.Flags()
	flags.BoolVar(&o.Once, "once", false, "print once and exit")
	flags.BoolVar(&o.JSON, "json", false, "print JSON once, with exact bytes and all rows")
	flags.DurationVar(&o.Interval, "interval", o.Interval, "refresh after this `TIME`, at least 1s")
	flags.IntSliceVar(&o.Devices, "device", nil, "only this device `INDEX`, as nvidia-smi counts (repeatable)")
	flags.IntSliceVar(&o.PIDs, "pid", nil, "only the process with this `NUMBER` (repeatable)")
	flags.StringVar(&o.By, "by", "", "group owners by this `NAME` (default: chosen by what was recorded): "+
		strings.Join(profile.GroupingNames(), ", "))
	flags.IntVarP(&o.Rows, "rows", "n", top.DefaultRows, "`ROWS` of owners of each process; 0: all")
	flags.BoolVar(&o.ASCII, "ascii", false, "draw with ASCII characters only")
	flags.StringVar(&o.Listen, "listen", "",
		"serve metrics at http://`ADDRESS`/metrics, such as 127.0.0.1:9464, for Prometheus")
	flags.StringVar(&o.Textfile, "textfile", "",
		"write metrics to `FILE`.prom every --interval (then 15s by default), for node_exporter; -: to standard output")
	cli.GroupFlags(cmd, cli.GroupWhat, "by", "interval")
	cli.GroupFlags(cmd, cli.Filters, "device", "pid")
	cli.GroupFlags(cmd, cli.Layout, "rows", "ascii")
	cli.GroupFlags(cmd, cli.Output, "once", "json", "listen", "textfile")
	cli.CompleteFlag(cmd, "by", cli.CompleteValues(profile.GroupingNames()...))
	for _, name := range []string{"interval", "device", "rows", "listen", "pid"} {
		cli.CompleteFlag(cmd, name, cli.CompleteValues())
	}
}

// topHost is what this command lends the live view.
func (a *app) topHost() *top.Host {
	return &top.Host{
		Stdin: a.Stdin, Stdout: a.Stdout, Log: a.Log, Quiet: a.Quiet, Say: a.Say, Usage: cli.UsageErrorf,
		WriteTo: a.WriteTo,
		Traces: func(arg string) ([]string, error) {
			inputs, err := tracefile.ExpandArg(arg)
			paths := make([]string, len(inputs))
			for i := range inputs {
				paths[i] = inputs[i].Path
			}
			return paths, err
		},
		OpenError: tracefile.OpenError, ShortPath: cli.ShortPath,
		Width:   func(terminal bool) int { return cli.ReportWidth(a.Stdout, terminal) },
		Symbols: cli.SymbolOptions(), Own: cli.OwnFlags(nil), Bookmarks: top.DefaultBookmarks(),
	}
}
