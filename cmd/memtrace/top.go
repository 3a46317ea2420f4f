package main

import (
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"memtrace/analyzer/profile"
	"memtrace/analyzer/render"
	"memtrace/internal/visible"
)

const topLong = `Show the devices, the processes on them and, for those that memtrace records, who
owns their memory right now.

Recorded processes of this user are found automatically; FILE and DIR name further
traces, such as those of a process that another user lets you read. Devices and
the processes on them come from NVIDIA's management library. On a machine without
it, recorded processes are still shown.

On a terminal the view fills the screen: q quits, ? lists the other keys. Elsewhere,
and with --once, it is printed once.

--listen and --textfile show nothing but publish the same figures as metrics, for
Prometheus and others: at http://ADDRESS/metrics, or in a file that is replaced every
--interval. Only processes of this user, and those behind FILE and DIR, have owners there.`

const topExample = `  memtrace top
  memtrace top --once
  memtrace top --device 0 --by library --interval 5s
  memtrace top --json | jq '.processes[].owners.rows[0]'
  memtrace top --listen 127.0.0.1:9464
  memtrace top --textfile /var/lib/node_exporter/textfile/memtrace.prom`

// minInterval keeps top from stalling the programs that it looks at: a question for a device's processes takes milliseconds under a lock of the driver.
const minInterval = time.Second

// topFlags are the flags of top.
type topFlags struct {
	once, json bool
	ascii      bool
	interval   time.Duration
	devices    []int
	pids       []int
	by         string
	rows       int

	listen, textfile string
	intervalGiven    bool
}

func (a *app) topCommand() *cobra.Command {
	flags := topFlags{interval: minInterval}
	cmd := &cobra.Command{
		Use:               "top [flags] [FILE|DIR...]",
		Short:             "Show devices, their processes and the owners of memory, live",
		Long:              topLong,
		Example:           topExample,
		ValidArgsFunction: completeTraces,
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.intervalGiven = cmd.Flags().Changed("interval")
			return a.top(&flags, args)
		},
	}
	flags.define(cmd)
	return cmd
}

func (f *topFlags) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.once, "once", false, "print once and exit")
	flags.BoolVar(&f.json, "json", false, "print JSON once, with exact bytes and all rows")
	flags.DurationVar(&f.interval, "interval", f.interval, "refresh `TIME`, at least 1s")
	flags.IntSliceVar(&f.devices, "device", nil, "only this device `INDEX`, as nvidia-smi counts (repeatable)")
	flags.IntSliceVar(&f.pids, "pid", nil, "only the process with this `NUMBER` (repeatable)")
	flags.StringVar(&f.by, "by", "", "group owners by `NAME`: "+strings.Join(profile.GroupingNames(), ", ")+" (default: what says most)")
	flags.IntVarP(&f.rows, "rows", "n", defaultTopRows, "`ROWS` of owners of each process, 0 for all")
	flags.BoolVar(&f.ascii, "ascii", false, "draw with ASCII characters only")
	flags.StringVar(&f.listen, "listen", "", "serve metrics at http://`ADDRESS`/metrics, such as 127.0.0.1:9464, for Prometheus")
	flags.StringVar(&f.textfile, "textfile", "", "write metrics to a `FILE`.prom every --interval (15s if not given), for node_exporter; -: to standard output")
	mustComplete(cmd, "by", completeValues(profile.GroupingNames()...))
	for _, name := range []string{"interval", "device", "rows", "listen", "pid"} {
		mustComplete(cmd, name, completeValues())
	}
}

func (f *topFlags) check() error {
	if f.interval < minInterval {
		return usagef("--interval %s: the shortest is %s: more often would slow down the programs on the device", f.interval, minInterval)
	}
	for _, index := range f.devices {
		if index < 0 {
			return usagef("--device %d: name the device's number, such as 0", index)
		}
	}
	for _, pid := range f.pids {
		if pid <= 0 {
			return usagef("--pid %d: name the number of a process", pid)
		}
	}
	if f.by != "" && !slices.Contains(profile.GroupingNames(), f.by) {
		return usagef("--by %s: choose from %s", f.by, strings.Join(profile.GroupingNames(), ", "))
	}
	if f.rows < 0 {
		return usagef("-n %d: must be a number of rows, or 0 for all", f.rows)
	}
	return f.checkMetrics()
}

func (a *app) top(flags *topFlags, args []string) error {
	if err := flags.check(); err != nil {
		return err
	}
	for _, arg := range args {
		if _, err := os.Stat(arg); err != nil {
			if _, err := expandInput(arg); err != nil {
				return err
			}
		}
	}
	sampler := newTopSampler(flags, args)
	defer sampler.close()
	if flags.metrics() {
		return a.topMetrics(sampler, flags)
	}
	terminal := term.IsTerminal(int(a.stdout.Fd()))
	if flags.json || flags.once || !terminal || os.Getenv("TERM") == "dumb" {
		return a.topOnce(sampler, flags, terminal)
	}
	return a.topLive(sampler, flags)
}

// topOnce reads every trace to its present end and prints what there is.
func (a *app) topOnce(sampler *topSampler, flags *topFlags, terminal bool) error {
	sample := sampler.sample(math.MaxInt64)
	form := visible.Lines
	if flags.json {
		form = visible.JSON
	}
	return a.writeTo("", false, form, func(w io.Writer) error {
		if flags.json {
			return writeTopJSON(w, sample)
		}
		page := topPage{sample: sample, width: reportWidth(a.stdout, terminal), rows: flags.rows, ascii: flags.ascii, open: func(int) bool { return true }}
		for _, line := range page.lines() {
			if _, err := io.WriteString(w, strings.TrimRight(line.text(false), " ")+"\n"); err != nil {
				return err
			}
		}
		return nil
	})
}

// topBytes writes a size, or that nobody tells it.
func topBytes(n *uint64) string {
	if n == nil {
		return "not reported"
	}
	return render.Bytes(*n)
}
