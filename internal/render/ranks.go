package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// RanksText prints the processes of one run: the difference in a sentence, then a row for each. Options.Path is the
// folder of their traces.
func RanksText(w io.Writer, r *diff.Ranks, o layout.Options) error {
	p := layout.NewPage(w, o)
	p.Title("memtrace report  " + sanitize.Text(o.Path))
	p.Gap()
	for _, sentence := range append([]string{ranksVerdict(r)}, strayVerdict(r)...) {
		for _, part := range layout.Wrap(sentence, o.Columns()-2) {
			p.Line("  %s", o.Paint(layout.Strong, part))
		}
	}
	p.Gap()
	writeRanksTable(p, r)
	p.Gap()
	if p.Err() != nil {
		return fmt.Errorf("write the table of processes: %w", p.Err())
	}
	return nil
}

// ranksVerdict describes the spread of the peaks, and which process differs from the others by what.
func ranksVerdict(r *diff.Ranks) string {
	var hosts []string
	var peaks []uint64
	failed := 0
	for i := range r.Processes {
		s := r.Processes[i].Summary
		if !slices.Contains(hosts, s.Process.Host) {
			hosts = append(hosts, s.Process.Host)
		}
		peaks = append(peaks, s.Main().PeakBytes)
		if s.OOM.Count > 0 {
			failed++
		}
	}
	text := fmt.Sprintf("%d processes", len(r.Processes))
	if len(hosts) > 1 {
		text += fmt.Sprintf(" on %d hosts", len(hosts))
	}
	text += fmt.Sprintf(", with peaks from %s to %s", layout.Bytes(slices.Min(peaks)), layout.Bytes(slices.Max(peaks)))
	if failed > 0 {
		text += fmt.Sprintf("; %d of them ran out of memory", failed)
	}
	if r.Outlier < 0 {
		if len(peaks) > 2 {
			text += ", all within 5% of the median"
		}
		return text + "."
	}
	return text + fmt.Sprintf(". %s differs most. Compared with %s: %s",
		layout.UpperFirst(processName(r.Processes[r.Outlier].Summary.Process)),
		processName(r.Processes[r.Typical].Summary.Process), DiffVerdict(r.Diff)) + scaleWords(r.Scale)
}

// scaleWords explains the difference of two processes that train the same model.
func scaleWords(s *diff.Scale) string {
	size := "larger"
	switch {
	case s == nil:
		return ""
	case !s.Even:
		return fmt.Sprintf(" The model is the same; its activations are %.2f times as large.", s.Ratio)
	case s.Ratio < 1:
		size = "smaller"
	}
	return fmt.Sprintf(" The model is the same and every activation %.2f times as large: a %s batch.", s.Ratio, size)
}

// strayVerdict names processes that hold memory on a device that another one uses, and the remedy.
func strayVerdict(r *diff.Ranks) []string {
	var who []string
	var most diff.RankUse
	for i := range r.Processes {
		for _, use := range r.Processes[i].Stray {
			if name := processName(r.Processes[i].Summary.Process); !slices.Contains(who, name) {
				who = append(who, name)
			}
			if use.Bytes >= most.Bytes {
				most = use
			}
		}
	}
	if len(who) == 0 {
		return nil
	}
	shown := strings.Join(who, ", ")
	if len(who) > 4 {
		shown = strings.Join(who[:3], ", ") + fmt.Sprintf(" and %d others", len(who)-3)
	}
	return []string{
		fmt.Sprintf(
			"Memory on another process's device: %s, up to %s on %s. Call torch.cuda.set_device(LOCAL_RANK) before the first use of CUDA, or set CUDA_VISIBLE_DEVICES for each process.",
			shown, layout.Bytes(most.Bytes), layout.DeviceName(most.Device))}
}

func writeRanksTable(p *layout.Page, r *diff.Ranks) {
	columns := []layout.Column{{Title: "process"}, {Title: "host", Optional: 3}, {Title: "device", Right: true},
		{Title: "peak", Right: true}, {Title: "vs median", Right: true, Optional: 2}, {Title: "at end", Right: true},
		{Title: "ended", Optional: 1}}
	median := r.Processes[r.Typical].Summary.Main().PeakBytes
	var rows [][]layout.Cell
	for i := range r.Processes {
		q := &r.Processes[i]
		s := q.Summary
		style := layout.Plain
		if i == r.Outlier || s.OOM.Count > 0 {
			style = layout.Alarm
		}
		device := "-"
		if q.Device >= 0 {
			device = strconv.Itoa(int(q.Device))
		}
		for _, use := range q.Stray {
			device += fmt.Sprintf(" +%d", use.Device)
		}
		level := s.Main()
		away := "-"
		if median > 0 && len(r.Processes) > 2 {
			away = fmt.Sprintf("%+.1f%%", 100*(float64(level.PeakBytes)-float64(median))/float64(median))
		}
		rows = append(rows, []layout.Cell{{Text: processName(s.Process), Style: style},
			{Text: sanitize.Text(s.Process.Host)}, {Text: device}, {Text: layout.Bytes(level.PeakBytes), Style: style},
			{Text: away, Style: style}, {Text: layout.Bytes(level.LiveBytes)}, {Text: ending(s), Style: style}})
	}
	p.Table(columns, rows)
}

// ending describes briefly how a process ended.
func ending(s *report.Summary) string {
	if s.OOM.Count > 0 {
		return "out of memory"
	}
	switch {
	case s.Process.Ended == report.EndedRunning:
		return "running"
	case s.Process.ExitStatus != nil:
		return fmt.Sprintf("exit status %d", *s.Process.ExitStatus)
	case s.Process.Signal != "":
		return sanitize.Text(s.Process.Signal)
	case s.Process.Ended == report.EndedKilled:
		return "killed"
	}
	return "exited"
}

// processName names one of several processes: by rank if it has one, else by its number.
func processName(p report.Process) string {
	if p.Rank != nil {
		return fmt.Sprintf("rank %d", *p.Rank)
	}
	return fmt.Sprintf("pid %d", p.PID)
}
