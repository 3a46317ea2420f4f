package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"memtrace/cuda"
	"memtrace/internal/safefile"
	"memtrace/internal/spool"
	"memtrace/trace"
)

const (
	// shortWait is how soon to look again while events come, longWait while none do: the recorder wakes the drainer
	// early when its rings fill up.
	shortWait = 20 * time.Millisecond
	longWait  = 500 * time.Millisecond
	// shortFill and longFill are after how many segments the recorder wakes the drainer out of these. A wake-up costs
	// the program tens of microseconds where it raises another processor out of its sleep, so a usual training step
	// fills fewer than shortFill within shortWait.
	shortFill = 64
	longFill  = 8
	// flushEvents and flushAge close a block: large blocks compress better, old ones make the trace of a running
	// program stale.
	flushEvents = 16 << 10
	flushAge    = time.Second
	// stuckAfter is how long one thread inside a free may hold back the events of all others.
	stuckAfter = 500 * time.Millisecond
)

// drainer moves one spool's records into one trace file.
type drainer struct {
	spool     *spool.Spool
	cursor    *spool.Cursor
	losses    *spool.Losses
	file      *os.File // the trace
	tracePath string
	writer    *trace.Writer
	log       zerolog.Logger

	unflushed int       // events in the writer's open block
	oldest    time.Time // when the first of them came
	watermark uint64
	progress  time.Time // when the watermark last moved, or nothing was held back
	looked    bool      // versions were looked up
	framework bool      // a framework's blocks have come
	pacer     *pacer
	packages  *packageFinder
	memory    guestMemory

	oom     *oomReporter    // nil: no texts about running out of memory
	symbols *symbolEmbedder // nil: the trace gets no names of functions
	limit   *limiter        // nil: the trace may become as large as it will
}

// settings are what C passes on.
type settings struct {
	spoolPath, tracePath string
	spoolFile, traceFile safefile.Identity // of the files that C made under these names
	oomTexts             string
	memory               guestMemory
	traceMax             int64
	embedTime            time.Duration // for names of functions at the end; 0: none
	replaces             bool          // a trace of that name, if there was one
}

// run drains until the process ends or something breaks.
func (d *drainer) run() {
	d.memory.limitHeap()
	defer func() {
		if fault := recover(); fault != nil {
			d.fail(fmt.Errorf("internal fault: %v", fault))
		}
	}()
	d.pacer = newPacer()
	d.spool.SetDraining(false)
	if err := d.loop(); err != nil {
		d.fail(err)
	}
}

// newDrainer opens both files. A failure, panics included, is logged and returned; then nothing stays open.
func newDrainer(set settings, log zerolog.Logger) (_ *drainer, err error) {
	d := &drainer{log: log, progress: time.Now(), memory: set.memory, packages: newPackageFinder(),
		tracePath: set.tracePath}
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("internal fault: %v", fault)
		}
		if err == nil {
			return
		}
		level := zerolog.ErrorLevel
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			// the program deleted the spool before it was opened, or gave up its rights to it: no error
			level = zerolog.InfoLevel
		}
		log.WithLevel(level).Msg(stopped(err, set.tracePath, "the drainer cannot start"))
		if d.file != nil {
			d.file.Close()
		}
		if d.spool != nil {
			d.spool.Close()
		}
	}()
	// C made both files; they are opened, never created, so that nothing is written to a file that was not requested.
	// In a folder that others can write to, another file may have replaced them since, or a link to one that only this
	// process may write to: what is opened is what C made, or nothing.
	if d.spool, err = spool.OpenOwn(set.spoolPath, set.spoolFile); err != nil {
		return nil, err
	}
	d.cursor = spool.NewCursor(d.spool)
	d.losses = spool.NewLosses(d.cursor)
	d.limit = newLimiter(set)
	if d.file, err = safefile.OpenToWrite(set.tracePath, os.O_WRONLY, set.traceFile); err != nil {
		return nil, err
	}
	if d.writer, err = trace.NewWriter(d.file, trace.WriterOptions{}); err != nil {
		return nil, err
	}
	if set.replaces {
		removeOOMFiles(set.tracePath, set.traceFile.Owner)
	}
	d.oom = newOOMReporter(set.oomTexts, d.spool.Info(), set.memory)
	info := d.spool.Info()
	if d.oom == nil && set.oomTexts != oomTextsNone {
		info[trace.OOMReplayKey] = "off (MEMTRACE_GUEST_MEMORY=0)"
	}
	if set.embedTime > 0 {
		d.symbols = newSymbolEmbedder(d.spool.Info(), set.embedTime)
	}
	return d, d.writer.WriteInfo(info)
}

// stopped logs what becomes of the records where the trace cannot be written.
func stopped(err error, tracePath, what string) string {
	if errors.Is(err, syscall.ENOSPC) {
		return "no space is left for the trace " + tracePath +
			"; records stay in the spool, and those that find no room there are lost"
	}
	return what + ", records stay in the spool: " + err.Error()
}

// fail gives up draining. What was not released stays in the spool, where readers find it.
func (d *drainer) fail(err error) {
	d.limit.abandon()
	d.log.Error().Msg(stopped(err, d.tracePath, "writing the trace has stopped"))
	d.spool.SetDraining(true)
}

func (d *drainer) loop() error {
	for {
		stop := d.spool.StopRequested()
		moved, more, err := d.round(stop)
		if err != nil {
			return err
		}
		switch {
		// without the second, a spool that something scribbled over would keep this loop spinning
		case more && moved > 0:
		case stop:
			return d.finish()
		case moved > 0 || d.unflushed > 0 || d.pendingOOM():
			d.spool.Wait(shortWait, shortFill)
		default:
			d.spool.Wait(longWait, longFill)
		}
	}
}

// round moves what is complete into the writer and flushes when it is time.
func (d *drainer) round(stop bool) (moved int, more bool, err error) {
	now := time.Now()
	d.pacer.keep(max(d.spool.Pressure(), float64(d.cursor.Backlog())/fullBacklog))
	events, watermark, more := d.cursor.Collect(stop || now.Sub(d.progress) > stuckAfter)
	if err := d.spool.Unreadable(); err != nil {
		return 0, false, err
	}
	lost := d.losses.Take(stop && !more)
	if watermark != d.watermark {
		d.watermark, d.progress = watermark, now
	}
	if err := d.cursor.Dictionary(d.dictionary()); err != nil {
		return 0, false, err
	}
	for _, batch := range [...][]trace.Event{lost, events} {
		if err := d.write(batch, now); err != nil {
			return 0, false, err
		}
	}
	if err := d.reportOOM(stop && !more, now, lost, events); err != nil {
		return 0, false, err
	}
	if d.unflushed >= flushEvents || stop || d.spool.Waiting() || (d.unflushed > 0 && now.Sub(d.oldest) >= flushAge) {
		err = d.flush()
	}
	if err == nil && !stop {
		err = d.keepLimit()
	}
	return len(events), more, err
}

func (d *drainer) write(events []trace.Event, now time.Time) error {
	if len(events) == 0 {
		return nil
	}
	if d.unflushed == 0 {
		d.oldest = now
	}
	d.unflushed += len(events)
	if !d.framework && slices.ContainsFunc(events, ofFramework) {
		d.framework, d.looked = true, false // the first look may have come before the program loaded it
	}
	return d.writer.WriteEvents(events)
}

func ofFramework(e trace.Event) bool { return e.Level == cuda.LevelFramework }

func (d *drainer) flush() error {
	if !d.looked {
		d.looked = true
		if err := d.writer.WriteInfo(versions()); err != nil {
			return err
		}
	}
	if info := d.packages.look(); info != nil {
		if err := d.dictionary().WriteInfo(info); err != nil {
			return err
		}
	}
	if err := d.writer.Flush(d.watermark); err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	d.cursor.Release()
	d.unflushed = 0
	return nil
}

// finish closes a run that ended by itself: the trace is whole, so the spool goes.
func (d *drainer) finish() error {
	d.limit.abandon()
	drawn, err := d.drainRest()
	if err != nil {
		return err
	}
	info := versions()
	maps.Copy(info, d.spool.Info())
	maps.Copy(info, drawn.Info())
	if err := d.writer.WriteInfo(info); err != nil {
		return err
	}
	if err := d.embedSymbols(); err != nil {
		return err
	}
	records, rings, dict := d.spool.Lost()
	if err := d.writer.Close(trace.End{Reason: "exit", LostRecords: records, LostRings: rings, LostDict: dict,
		Time: d.cursor.Now()}); err != nil {
		return fmt.Errorf("close the trace: %w", err)
	}
	if err := d.file.Close(); err != nil {
		return fmt.Errorf("close the trace: %w", err)
	}
	// The program may have dropped the rights to its folder, or changed its root. A spool beside a whole trace is
	// superfluous and does no harm.
	if err := d.spool.Remove(d.tracePath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.log.Info().Msg("the trace is whole, its spool stays: " + err.Error())
	}
	d.spool.Drained()
	return nil
}
