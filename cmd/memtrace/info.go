package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"memtrace/analyzer/report"
	"memtrace/internal/cli"
	"memtrace/internal/sanitize"
	"memtrace/internal/spool"
	"memtrace/internal/tracefile"
	"memtrace/trace"
)

// infoSchema names the shape of info's JSON. Its number grows only when something is changed or taken away.
const infoSchema = "memtrace.info/1"

// traceInfo is what info reports about one file: what the recorder wrote down about the run, and how whole the file is.
type traceInfo struct {
	Schema        string            `json:"schema"`
	Path          string            `json:"path"`
	FileBytes     int64             `json:"file_bytes"`
	Ended         string            `json:"ended"` // clean, killed, running or unknown
	EndReason     string            `json:"end_reason,omitempty"`
	Events        uint64            `json:"events"`
	Kinds         map[string]uint64 `json:"kinds"` // events by kind
	BytesPerEvent float64           `json:"bytes_per_event"`
	Lost          lostInfo          `json:"lost"`
	Health        healthInfo        `json:"health"`
	Info          trace.Info        `json:"info"`
	Devices       []deviceInfo      `json:"devices"`
	Threads       int               `json:"threads"`
	Modules       int               `json:"modules"`
	Stacks        stackInfo         `json:"stacks"`
}

// stackInfo counts what call stacks are made of.
type stackInfo struct {
	Native      int `json:"native"`
	Python      int `json:"python"`
	CodeObjects int `json:"code_objects"`
	Symbols     int `json:"symbols"` // code addresses whose names the trace holds itself
}

type lostInfo struct {
	Records    uint64 `json:"records"`
	Frees      uint64 `json:"frees,omitempty"`  // of them, by events that show it: frees, unmappings and destructions
	Others     uint64 `json:"others,omitempty"` // the same: all others
	Rings      uint64 `json:"rings"`
	Dictionary uint64 `json:"dictionary"`
}

// note takes in a lost event.
func (l *lostInfo) note(e trace.Lost) {
	if e.Known {
		l.Frees += e.Enders
		l.Others += e.Count - e.Enders
	}
}

func (l lostInfo) recordsText() string {
	text := fmt.Sprintf("%d records", l.Records)
	if l.Frees+l.Others > 0 {
		text += fmt.Sprintf(" (%d frees, %d others)", l.Frees, l.Others)
	}
	return text
}

type healthInfo struct {
	Truncated       bool         `json:"truncated"`
	TruncatedAt     int64        `json:"truncated_at,omitempty"`
	Reason          string       `json:"reason,omitempty"`
	NoEnd           string       `json:"no_end,omitempty"`
	Damaged         *report.Torn `json:"damaged,omitempty"`
	RestoredAt      int64        `json:"restored_at,omitempty"`
	Sections        uint64       `json:"sections"`
	SkippedSections uint64       `json:"skipped_sections"`
	Blocks          uint64       `json:"blocks"`
	LateEvents      uint64       `json:"late_events"`
	UnknownEvents   uint64       `json:"unknown_events"`
	Altered         string       `json:"altered,omitempty"`
	RepeatedEvents  uint64       `json:"repeated_events"`
	MissingEvents   uint64       `json:"missing_events"`
	InFlightCalls   uint64       `json:"in_flight_calls"`
	TrailingBytes   int64        `json:"trailing_bytes"`
	Epilogue        string       `json:"epilogue,omitempty"` // why what follows the end could not be read
}

type deviceInfo struct {
	Index      int16  `json:"index"`
	Name       string `json:"name"`
	UUID       string `json:"uuid"`
	TotalBytes uint64 `json:"total_bytes"`
}

const infoExample = `  memtrace info memtrace.python3.4711.bin
  memtrace info --json memtrace.python3.4711.bin`

func infoCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "info FILE|DIR...",
		Short:             "Print what was recorded, and whether the trace is complete",
		Long:              "Print what is recorded about a run, and whether its trace is complete.",
		Example:           infoExample,
		ValidArgsFunction: cli.CompleteTraces,
		Args:              cli.SomeTraces,
		RunE: func(_ *cobra.Command, args []string) error {
			info := tracefile.Shown[traceInfo]{Load: a.readInfo, Show: writeInfoText, JSON: asJSON}
			if asJSON {
				info.Show, info.Form = writeInfoJSON, sanitize.JSON
			}
			return info.ToFile(&a.Console, args, "", false)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// countKinds reads a trace to its end. All columns are decoded, for only then is it known that the trace is whole, but
// no rows are made of them.
func countKinds(run *spool.Run, lost *lostInfo, bar *cli.Progress) (kinds [256]uint64, err error) {
	for {
		b, err := run.ReadColumns()
		if errors.Is(err, io.EOF) {
			return kinds, nil
		}
		if err != nil {
			return kinds, err
		}
		for i := range b.Runs() {
			c := &b.Runs()[i]
			for n, kind := range c.Kinds() {
				if kinds[kind]++; kind == trace.EventLost {
					var e trace.Event
					c.Row(n, &e)
					lost.note(e.Lost())
				}
			}
		}
		if len(b.Runs()) == 0 {
			countRows(&kinds, lost, b.Rows())
		}
		bar.Update(run.Offset())
	}
}

// countRows is countKinds for the records of a spool.
func countRows(kinds *[256]uint64, lost *lostInfo, events []trace.Event) {
	for i := range events {
		e := &events[i]
		if kinds[e.Kind]++; e.Kind == trace.EventLost {
			lost.note(e.Lost())
		}
	}
}

// readInfo reads a whole trace, since what it holds and where it ends is known only then.
func (a *app) readInfo(path string) (traceInfo, error) {
	run, err := tracefile.Open(&a.Console, path)
	if err != nil {
		return traceInfo{}, err
	}
	defer run.Close()
	bar := a.NewProgress(path, run.Size())
	defer bar.Finish()
	var info traceInfo
	kinds, err := countKinds(run, &info.Lost, bar)
	if err != nil {
		return traceInfo{}, tracefile.ReadError(path, run, err)
	}
	end, _ := run.End()
	health := run.Health()
	info = traceInfo{Schema: infoSchema, Path: path, FileBytes: run.Size(), Ended: run.Ended(), EndReason: end.Reason,
		Events: health.Events, Info: run.Info(),
		Kinds: make(map[string]uint64), Threads: len(run.Tables().Threads()), Modules: len(run.Tables().Modules()),
		Devices: []deviceInfo{}, Lost: info.Lost}
	info.Stacks.Native, info.Stacks.Python, info.Stacks.CodeObjects = run.Tables().Sizes()
	info.Stacks.Symbols = run.Tables().Symbols()
	info.Lost.Records, info.Lost.Rings, info.Lost.Dictionary = run.Lost()
	info.Health = healthInfo{NoEnd: health.NoEnd, RestoredAt: health.Restored.At, Truncated: health.Truncated,
		TruncatedAt: health.TruncatedAt, Reason: health.Reason, Sections: health.Sections,
		SkippedSections: health.SkippedSections, Blocks: health.Blocks, LateEvents: health.LateEvents,
		UnknownEvents: health.UnknownEvents,
		Altered:       health.Altered, RepeatedEvents: health.Repeated, MissingEvents: health.Gaps,
		InFlightCalls: health.InFlight, TrailingBytes: health.Trailing, Epilogue: health.Epilogue}
	if health.Torn.Stretches > 0 {
		torn := report.Torn(health.Torn)
		info.Health.Damaged = &torn
	}
	for kind, n := range kinds {
		if n > 0 {
			info.Kinds[trace.EventKind(kind).String()] += n
		}
	}
	if health.Events > 0 {
		info.BytesPerEvent = float64(info.FileBytes) / float64(health.Events)
	}
	for _, d := range run.Tables().Devices() {
		info.Devices = append(info.Devices, deviceInfo{d.Index, d.Name, d.UUID, d.TotalBytes})
	}
	return info, nil
}

func writeInfoJSON(w io.Writer, t traceInfo) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(t)
}

// writeInfoText writes one "name  value" line per fact: the file first, then the run, then what is missing.
func writeInfoText(w io.Writer, t traceInfo) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(tab, "%s\t%s\n", sanitize.Text(name), sanitize.Text(fmt.Sprintf(format, args...)))
	}
	line("file", "%s", t.Path)
	line("bytes", "%d", t.FileBytes)
	line("ended", "%s", t.endedText())
	line("events", "%d", t.Events)
	if t.Events > 0 {
		line("kinds", "%s", t.kindsText())
		line("bytes/event", "%.2f", t.BytesPerEvent)
	}
	line("sections", "%d (%d event blocks, %d of unknown kind)", t.Health.Sections, t.Health.Blocks,
		t.Health.SkippedSections)
	line("threads", "%d", t.Threads)
	line("modules", "%d", t.Modules)
	line("stacks", "%d native, %d Python of %d code objects", t.Stacks.Native, t.Stacks.Python, t.Stacks.CodeObjects)
	line("symbols", "%d embedded", t.Stacks.Symbols)
	for _, d := range t.Devices {
		line(fmt.Sprintf("device %d", d.Index), "%s, %d bytes, %s", d.Name, d.TotalBytes, d.UUID)
	}
	for _, key := range slices.Sorted(maps.Keys(t.Info)) {
		if key != "process.argv" { // the same words as process.command
			line(key, "%s", infoValue(key, t.Info[key]))
		}
	}
	line("lost", "%s, %d rings, %d dictionary entries", t.Lost.recordsText(), t.Lost.Rings, t.Lost.Dictionary)
	line("late", "%d events", t.Health.LateEvents)
	line("missing", "%d events", t.Health.MissingEvents)
	if t.Health.RepeatedEvents > 0 {
		line("repeated", "%d events", t.Health.RepeatedEvents)
	}
	if t.Health.InFlightCalls > 0 {
		line("in flight", "%d calls at the end", t.Health.InFlightCalls)
	}
	if t.Health.UnknownEvents > 0 {
		line("unknown", "%d events of kinds that this version does not know", t.Health.UnknownEvents)
	}
	line("damage", "%s", t.damageText())
	return tab.Flush()
}

// kindsText lists how many events there are of each kind, in the order of the format.
func (t traceInfo) kindsText() string {
	var parts []string
	for _, name := range append(eventKinds(), "unknown") {
		if n := t.Kinds[name]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, name))
		}
	}
	return strings.Join(parts, ", ")
}

func (t traceInfo) endedText() string {
	if t.EndReason != "" {
		return t.Ended + " (" + t.EndReason + ")"
	}
	return t.Ended
}

func (t traceInfo) damageText() string {
	switch {
	case t.Health.Truncated:
		return fmt.Sprintf("cut at offset %d: %s; all before that was read", t.Health.TruncatedAt, t.Health.Reason)
	case t.Health.NoEnd != "":
		return "no end, later records may be missing: " + t.Health.NoEnd
	case t.Health.Damaged != nil:
		d := t.Health.Damaged
		return fmt.Sprintf("at offset %d: %s; %d bytes with %d events could not be read, all others were", d.At,
			d.Reason, d.Bytes, d.Records)
	case t.Health.RestoredAt > 0:
		return fmt.Sprintf("at offset %d, restored; nothing is missing", t.Health.RestoredAt)
	case t.Health.Altered != "":
		return "changed after it was written: " + t.Health.Altered
	case t.Health.TrailingBytes != 0:
		return fmt.Sprintf("none, but what follows the end cannot be read (%d bytes: %s)", t.Health.TrailingBytes,
			t.Health.Epilogue)
	}
	return "none"
}

// infoValue makes times readable beside their number.
func infoValue(key, value string) string {
	if ns, err := strconv.ParseInt(value, 10, 64); err == nil && strings.HasSuffix(key, "_unix_ns") {
		return fmt.Sprintf("%s (%s)", value, time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	return value
}
