package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"memtrace/internal/metrics"
	"memtrace/internal/sanitize"
)

const (
	textfileInterval = 15 * time.Second // as often as node_exporter is commonly scraped
	textfileSuffix   = ".prom"          // node_exporter reads no other files
	lastAnswers      = 2 * time.Second  // that a scrape under way has when the server ends
	// that the last reading of the traces may take; python/memtrace/_figures.py waits longer
	lastFigures = 25 * time.Second
)

// metrics reports whether the figures are published instead of shown.
func (o *Options) metrics() bool { return o.Listen != "" || o.Textfile != "" }

func (o *Options) checkMetrics(h *Host) error {
	if !o.metrics() {
		return nil
	}
	if o.JSON {
		return h.Usage("--json with --listen or --textfile: choose one")
	}
	if o.Once && o.Textfile == "" {
		return h.Usage("--once with --listen: the server would exit at once; leave out --once, or use --textfile")
	}
	if o.Listen == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(o.Listen)
	if number, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil {
		return h.Usage("--listen %s: name an address and a port, such as 127.0.0.1:9464", o.Listen)
	} else if number == 0 && host == "" {
		return h.Usage(
			"--listen %s: port 0 is not allowed, because scrapers need a fixed port; name one, such as 127.0.0.1:9464",
			o.Listen)
	}
	return nil
}

// publisher makes metrics on request, one sample at a time and at most one an interval: querying the devices costs
// the programs on them.
type publisher struct {
	mu       sync.Mutex
	sampler  *sampler
	metrics  *metricState
	interval time.Duration
	made     time.Time
	families []*metrics.Family
}

// collect returns metrics that are not older than an interval. The list is not changed afterwards.
func (t *publisher) collect(patience time.Duration) ([]*metrics.Family, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.families == nil || time.Since(t.made) >= t.interval {
		t.publish(t.sampler.sample(patience))
	}
	return t.families, nil
}

// collectLast returns metrics of what the traces hold now.
func (t *publisher) collectLast(patience time.Duration) ([]*metrics.Family, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.publish(t.sampler.last(patience))
	return t.families, nil
}

func (t *publisher) publish(sample sample) {
	t.families, t.made = t.metrics.families(&sample), time.Now()
}

// publishMetrics publishes until it is stopped.
func (h *Host) publishMetrics(sampler *sampler, flags *Options) error {
	publisher := &publisher{sampler: sampler, metrics: newMetricState(), interval: flags.Interval}
	if flags.Once {
		return h.writeMetrics(flags.Textfile, publisher.collect, math.MaxInt64)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var served chan error
	if flags.Listen != "" {
		listener, err := h.listenForMetrics(flags.Listen)
		if err != nil {
			return err
		}
		address, _ := listener.Addr().(*net.TCPAddr)
		server := metrics.NewServer(publisher.collect, address != nil && address.IP.IsLoopback())
		served = make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		defer func() {
			last, cancel := context.WithTimeout(context.Background(), lastAnswers)
			defer cancel()
			_ = server.Shutdown(last) // the process ends in any case
		}()
	}
	if flags.Textfile == "" {
		select {
		case <-ctx.Done():
			return nil
		case err := <-served:
			return fmt.Errorf("serve metrics: %w", err)
		}
	}
	return h.keepTextfile(ctx, flags, publisher, served)
}

func (h *Host) listenForMetrics(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		hint := ""
		if errors.Is(err, syscall.EADDRINUSE) {
			hint = "; another program has that port: name another one"
		}
		return nil, fmt.Errorf("listen: %w%s", err, hint)
	}
	bound, _ := listener.Addr().(*net.TCPAddr)
	if bound == nil || !bound.IP.IsLoopback() {
		h.Log.Warn().Msgf(
			"whoever reaches %s can read the names of processes, users, files and functions: there is neither encryption nor a password; 127.0.0.1 keeps them on this machine", listener.Addr())
	}
	if !h.Quiet {
		h.Say("metrics at http://%s%s", listener.Addr(), metrics.Path)
	}
	return listener, nil
}

// keepTextfile writes the file every interval, and removes it in the end: node_exporter would go on serving its last
// figures as the present ones. A failed write is reported, and the next one tried, since disks fill up and are cleaned
// again.
func (h *Host) keepTextfile(ctx context.Context, flags *Options, publisher *publisher, served <-chan error) error {
	interval := flags.Interval
	if !flags.IntervalGiven {
		interval = textfileInterval
	}
	toFile := flags.Textfile != "-"
	if toFile && !strings.HasSuffix(flags.Textfile, textfileSuffix) {
		h.Log.Warn().Msgf("%s: node_exporter reads only files that end in %s", flags.Textfile, textfileSuffix)
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	said := ""
	for written := false; ; written = true {
		err := h.writeMetrics(flags.Textfile, publisher.collect, interval)
		switch {
		case err != nil && (!written || !toFile):
			return err
		case err != nil && err.Error() != said:
			h.Log.Warn().Msgf("%v; it is tried again every %s", err, interval)
			said = err.Error()
		case err == nil:
			said = ""
		}
		select {
		case <-tick.C:
		case err := <-served:
			return fmt.Errorf("serve metrics: %w", err)
		case <-ctx.Done():
			if !toFile { // the collector gets the state at the end
				return h.writeMetrics(flags.Textfile, publisher.collectLast, lastFigures)
			}
			if err := os.Remove(flags.Textfile); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("take back the metrics: %w", err)
			}
			return nil
		}
	}
}

// writeMetrics replaces the file in one step, so that no reader sees half of it. On standard output texts follow each
// other, each with its end mark.
func (h *Host) writeMetrics(path string, collect func(time.Duration) ([]*metrics.Family, error),
	patience time.Duration) error {
	format := metrics.Classic // the only one that node_exporter's textfile collector reads
	if path == "-" {
		format = metrics.OpenMetrics
	} else if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return h.Usage("--textfile %s: not a regular file; name a file that may be replaced", path)
	}
	families, err := collect(patience)
	if err != nil {
		return err
	}
	return h.WriteTo(path, true, sanitize.Lines, func(w io.Writer) error { return metrics.Write(w, families, format) })
}
