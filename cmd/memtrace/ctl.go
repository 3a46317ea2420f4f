package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"memtrace/internal/attach"
	"memtrace/internal/cli"
	"memtrace/internal/control"
	"memtrace/internal/render/layout"
	"memtrace/internal/rewrite"
	"memtrace/internal/sanitize"
	"memtrace/internal/tracefile"
	"memtrace/trace"
)

const controlLong = `Control the recording of a process, over a socket for its own user and root:

  status     show whether it records, and in which trace
  start      begin, where it was started with MEMTRACE_START=asleep
  stop       end the recording: the trace is complete, the program goes on
  mark NAME  set a mark, as memtrace.mark() does in the program
  snapshot   write a small trace of what is live now, with call stacks and tags
  report     show the report of the trace as it is now
  referrers  show what still refers to PyTorch's CUDA tensors, and where they were allocated

A process can be recorded once: there is no start after stop.`

const controlExample = `  memtrace ctl 4711 mark before-the-large-batch
  memtrace ctl 4711 snapshot -o live.bin
  memtrace report --at mark:before-the-large-batch memtrace.python3.4711.bin
  memtrace ctl 4711 stop`

type controlOptions struct {
	output  string
	force   bool
	json    bool
	rows    int
	timeout time.Duration
	asked   func(flag string) bool // a flag was given
}

// Of a search for referrers.
const (
	referrersRows    = 10
	referrersTimeout = 10 * time.Second
)

// controlVerbs are the requests to a process, and how many arguments they take.
var controlVerbs = []struct {
	name      string
	arguments int
	writes    bool // takes -o
}{{"status", 0, false}, {"start", 0, true}, {"stop", 0, false}, {"mark", 1, false}, {"snapshot", 0, true},
	{"report", 0, true}, {"referrers", 0, true}}

func controlCommand(a *app) *cobra.Command {
	var o controlOptions
	cmd := &cobra.Command{
		Use:               "ctl PID status|start|stop|mark NAME|snapshot|report|referrers",
		Short:             "Control a recording: report, referrers, mark, snapshot, stop",
		Long:              controlLong,
		Example:           controlExample,
		Args:              o.check,
		ValidArgsFunction: completeControl,
		RunE: func(_ *cobra.Command, args []string) error {
			pid, err := parsePID(args[0])
			if err != nil {
				return err
			}
			return controller{a, o, pid}.run(args[1], args[2:])
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "",
		"start: name of the trace; snapshot, report, referrers: write to this `FILE`")
	f.BoolVarP(&o.force, "force", "f", false, "replace that file if it exists")
	f.IntVarP(&o.rows, "rows", "n", referrersRows, "referrers: `ROWS` to show")
	f.BoolVar(&o.json, "json", false, "referrers: print JSON, with exact bytes")
	f.DurationVar(&o.timeout, "timeout", referrersTimeout,
		"referrers: give up when Python's interpreter is busy for a `TIME`")
	o.asked = f.Changed
	return cmd
}

// check rejects words that are not requests.
func (o *controlOptions) check(_ *cobra.Command, args []string) error {
	if len(args) < 2 {
		return cli.UsageErrorf("name a process and what to do, such as: memtrace ctl 4711 status")
	}
	for _, verb := range controlVerbs {
		switch {
		case verb.name != args[1]:
			continue
		case len(args)-2 != verb.arguments && verb.arguments == 1:
			return cli.UsageErrorf("%s takes one name", verb.name)
		case len(args)-2 != verb.arguments:
			return cli.UsageErrorf("%s takes nothing more, such as %s", verb.name, args[2])
		case o.output != "" && !verb.writes:
			return cli.UsageErrorf("%s writes no file, so -o means nothing", verb.name)
		}
		return o.checkFlags(verb.name)
	}
	return cli.UsageErrorf("unknown request %q: choose status, start, stop, mark, snapshot, report or referrers", args[1])
}

// checkFlags refuses flags that mean nothing to a request.
func (o *controlOptions) checkFlags(verb string) error {
	for _, flag := range []string{"rows", "json", "timeout"} {
		if verb != "referrers" && o.asked(flag) {
			return cli.UsageErrorf("--%s does not apply to %s; leave it out", flag, verb)
		}
	}
	return nil
}

func completeControl(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return completePIDs(cmd, args, typed)
	}
	var names []cobra.Completion
	for _, verb := range controlVerbs {
		if len(args) == 1 {
			names = append(names, verb.name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// recorder talks to processes on the command's console.
func (a *app) recorder() *attach.Recorder { return &attach.Recorder{Console: &a.Console} }

// controller runs the verb on one process.
type controller struct {
	*app
	controlOptions
	pid int
}

func (c controller) run(verb string, rest []string) error {
	control.Sweep()
	o, pid, r := c.controlOptions, c.pid, c.recorder()
	switch verb {
	case "start":
		return r.Start(o.output, o.force, pid)
	case "stop":
		return r.Stop(pid)
	case "mark":
		return c.mark(rest[0])
	case "snapshot":
		return c.snapshot()
	case "referrers":
		return r.Referrers(attach.ReferrersOptions{Output: o.output, Force: o.force, JSON: o.json, Rows: o.rows,
			Timeout: o.timeout}, pid)
	}
	answer, err := r.Request(pid, "status")
	if err != nil {
		return err
	}
	if verb == "status" {
		return c.showStatus(answer)
	}
	path, err := attach.TraceOf(pid, answer)
	if err != nil {
		return err
	}
	return c.report(&cli.QueryFlags{Rows: cli.DefaultRows, Color: "auto", Output: o.output, Force: o.force},
		&cli.ViewFlags{}, []string{path}, func(string) bool {
			return false
		})
}

func (c controller) mark(name string) error {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return cli.UsageErrorf("a mark's name contains no control character")
	}
	if _, err := c.recorder().Request(c.pid, "mark "+name); err != nil {
		return fmt.Errorf("set a mark in process %d: %w", c.pid, err)
	}
	return nil
}

func (c controller) showStatus(answer control.Answer) error {
	pid := c.pid
	words := map[string]string{
		control.Idle:      "will record from its first CUDA call on",
		control.Asleep:    fmt.Sprintf("is not recorded; to begin, type: memtrace ctl %d start", pid),
		control.Recording: "is recorded in " + cli.ShortPath(answer.Trace),
		control.Ended:     "was recorded in " + cli.ShortPath(answer.Trace) + "; the recording has ended",
		control.Off:       "is not recorded, for recording failed",
	}[answer.State]
	if words == "" {
		words = "is " + answer.State
	}
	next := ""
	if answer.State == control.Recording || answer.State == control.Ended {
		next = fmt.Sprintf("  next     memtrace ctl %d report\n", pid)
	}
	return c.WriteTo("", false, sanitize.Lines, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "process %d %s\n  command  %s\n", pid, words, sanitize.Text(attach.CommandOf(pid)))
		if err == nil && answer.Start == control.StartedLate {
			_, err = fmt.Fprintf(w, "  began    amid the program's work; PyTorch held %s\n", layout.Bytes(answer.Held))
		}
		if err == nil {
			_, err = io.WriteString(w, next)
		}
		return err
	})
}

// snapshot writes what is live in a process that is recorded as a trace of its own.
func (c controller) snapshot() error {
	pid := c.pid
	answer, err := c.recorder().Request(pid, "status")
	if err != nil {
		return err
	}
	path, err := attach.TraceOf(pid, answer)
	if err != nil {
		return err
	}
	output := c.output
	if output == "" {
		output = fmt.Sprintf("live.%d.bin", pid)
	}
	source, err := tracefile.Open(&c.Console, path)
	if err != nil {
		return err
	}
	defer source.Close()
	live, err := rewrite.ReadLive(source)
	if err != nil {
		return tracefile.ReadError(path, source, err)
	}
	err = c.writeCopy(path, copyFlags{output, c.force}, sanitize.Bytes, func(w io.Writer) error {
		out, err := trace.NewWriter(w, trace.WriterOptions{})
		if err != nil {
			return err
		}
		return live.Write(out, source)
	})
	if err == nil && !c.Quiet && output != "-" {
		driver, framework := live.Bytes()
		c.Say("%s of device memory and %s in a framework's blocks are live; next: memtrace report %s",
			layout.Bytes(driver), layout.Bytes(framework), cli.ShellWord(output))
	}
	return err
}
