package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/cli"
	"memtrace/internal/page"
	"memtrace/internal/sanitize"
	"memtrace/internal/spool"
	"memtrace/internal/tracefile"
	"memtrace/internal/version"
	"memtrace/trace"
)

const serveLong = `Serve the pages of 'memtrace html' to a browser on this machine, without files: of
traces that are too large for one page, and of running programs, whose page shows what
is new every few seconds. Ctrl-C ends it.`

const serveDetails = `Of a folder, the traces in it are served, also those that are added later. The address
that is printed contains a secret, without which no page is shown: give it only to those
who may read the traces. The server listens on this machine only; from elsewhere,
forward the port, such as by 'ssh -L 8123:127.0.0.1:8123 HOST' with --port 8123.

` + cli.WindowHelp + `

` + cli.FilterHelp

const serveExample = `  memtrace serve memtrace.python3.4711.bin
  memtrace serve .
  memtrace serve --port 8123 runs/`

// serveBlocks is how many blocks of a trace are held, some 100 bytes each while it is read.
const serveBlocks = 10_000_000

type serveFlags struct {
	filters cli.QueryFlags
	blocks  int
	port    int
}

// lastAnswers is how long answers under way have when the server ends.
const lastAnswers = 2 * time.Second

func serveCommand(a *app) *cobra.Command {
	var flags serveFlags
	cmd := &cobra.Command{
		Use:         "serve [flags] DIR|FILE",
		Short:       "Serve pages of traces to a browser, also of running programs",
		Long:        serveLong,
		Annotations: map[string]string{cli.DetailsFlag: serveDetails},
		Example:     serveExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.UsageErrorf("name one trace or folder; got %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: cli.CompleteTraces,
		RunE:              func(_ *cobra.Command, args []string) error { return a.serve(&flags, args[0]) },
	}
	f := cmd.Flags()
	flags.filters.Window.Define(cmd)
	flags.filters.DefineFilters(cmd)
	f.IntVar(&flags.blocks, "blocks", page.DefaultBlocks,
		"put at most this number of `BLOCKS` on a page; others are sent on request")
	f.IntVar(&flags.port, "port", 0, "listen on this `PORT` (default: any that is free)")
	cli.CompleteFlag(cmd, "blocks", cli.CompleteValues())
	cli.CompleteFlag(cmd, "port", cli.CompleteValues())
	cli.GroupFlags(cmd, cli.GroupWhat, "blocks")
	return cmd
}

func (a *app) serve(flags *serveFlags, arg string) error {
	if flags.blocks < 1 {
		return cli.UsageErrorf("--blocks %d: must be at least 1", flags.blocks)
	}
	if flags.port < 0 || flags.port > 65535 {
		return cli.UsageErrorf("--port %d: choose between 1 and 65535, or 0 for any", flags.port)
	}
	options, err := flags.filters.PageOptions(serveBlocks)
	if err != nil {
		return err
	}
	info, err := os.Stat(arg)
	folder := err == nil && info.IsDir()
	path := ""
	if !folder {
		if path, err = tracefile.One(arg); err != nil {
			return err
		}
		run, err := tracefile.Open(&a.Console, path) // a file that is not a trace is reported here, not in the browser
		if err != nil {
			return err
		}
		run.Close()
	}
	traces := &page.Traces{Title: cli.ShortPath(arg), Writer: "memtrace " + version.String,
		Blocks: flags.blocks, Version: fileVersion,
		List: func() ([]page.Entry, error) { return servedEntries(a, arg) },
		Read: func(path string) (*report.Summary, error) { return a.summarizeQuietly(path, options) }}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	token := page.NewToken()
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(flags.port)))
	if err != nil {
		hint := ""
		if errors.Is(err, syscall.EADDRINUSE) {
			hint = "; another program has that port: name another one, or leave --port out"
		}
		return fmt.Errorf("listen: %w%s", err, hint)
	}
	address := "http://" + listener.Addr().String() + "/" + token + "/"
	if !folder {
		address = "http://" + listener.Addr().String() + page.PagePath(token, path)
	}
	if err := a.WriteTo("", false, sanitize.Lines, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, address)
		return err
	}); err != nil {
		return err
	}
	if !a.Quiet {
		a.Say("open this address in a browser on this machine; Ctrl-C ends it")
	}
	return serveUntil(ctx, listener, page.NewServer(token, traces))
}

// serveUntil answers until the user ends it; answers under way are waited for a moment.
func serveUntil(ctx context.Context, listener net.Listener, server *http.Server) error {
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.Background(), lastAnswers)
	defer cancel()
	_ = server.Shutdown(last) // the process ends in any case
	return nil
}

// summarizeQuietly is summarize without a bar and without warnings of other files: it runs repeatedly.
func (a *app) summarizeQuietly(path string, options analyzer.Options) (*report.Summary, error) {
	quiet := a.Quieted()
	return tracefile.Summarize(quiet, path, options)
}

// fileVersion changes when a trace, or the spool beside it, does.
func fileVersion(path string) string {
	var b strings.Builder
	for _, name := range []string{path, path + spool.Extension} {
		if info, err := os.Stat(name); err == nil {
			fmt.Fprintf(&b, "%d %d;", info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}

// servedEntries lists the files that can be shown, and why others cannot.
func servedEntries(a *app, arg string) ([]page.Entry, error) {
	inputs, err := tracefile.Expand([]string{arg})
	if info, statErr := os.Stat(arg); err != nil && statErr == nil && info.IsDir() {
		return nil, nil // it may fill
	}
	if err != nil {
		return nil, err
	}
	var list []page.Entry
	for _, in := range inputs {
		entry := page.Entry{Path: in.Path}
		if info, err := os.Stat(in.Path); err == nil {
			entry.Bytes, entry.Changed = info.Size(), info.ModTime()
		}
		if err := describeEntry(&entry); err != nil {
			if in.FromFolder && errors.Is(err, trace.ErrNotTrace) {
				continue
			}
			entry.Problem = err.Error()
		}
		list = append(list, entry)
	}
	return list, nil
}

// describeEntry reads the beginning of a trace.
func describeEntry(entry *page.Entry) error {
	run, err := tracefile.OpenAgain(entry.Path)
	if err != nil {
		return err
	}
	defer run.Close()
	if _, err := run.ReadBatch(); err != nil && !errors.Is(err, io.EOF) {
		return tracefile.ReadError(entry.Path, run, err)
	}
	entry.Command = run.Info()["process.command"]
	switch ended := run.Ended(); {
	case ended == spool.EndedRunning:
		entry.State = "running"
	case run.HasSpool() && ended == spool.EndedKilled:
		entry.State = "killed"
	default:
		entry.State = "ended"
	}
	return nil
}
