package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// RanksText prints the processes of one run: the difference in a sentence, then a row for each, or for those that are
// alike. Options.Path is the folder of their traces.
func RanksText(w io.Writer, r *diff.Ranks, o layout.Options) error {
	p := layout.NewPage(w, o)
	p.Title("memtrace report  " + sanitize.Text(o.Path))
	p.Gap()
	for _, sentence := range append(RanksVerdict(r), Absent(r)...) {
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

// RankHeading announces the report of a process that is looked at beyond the table, and why it is that one.
func RankHeading(r *diff.Ranks, i int) string {
	s := r.Processes[i].Head.Summary
	why := "has the highest peak"
	switch {
	case s.OOM.Count > 0:
		why = "ran out of memory"
	case len(r.Different) > 0 && r.Different[0].Process == i:
		why = "differs most"
	case slices.Contains(r.Growing, i):
		why = "grows"
	}
	return fmt.Sprintf("The report of %s, which %s:", ProcessName(r, i), why)
}

// RanksVerdict says how alike the processes of a run are, which differ and by what, and which grow.
func RanksVerdict(r *diff.Ranks) []string {
	return slices.Concat([]string{ranksVerdict(r)}, differences(r), growingVerdict(r), strayVerdict(r))
}

// ranksVerdict describes the spread of the peaks, and how the processes are divided.
func ranksVerdict(r *diff.Ranks) string {
	hosts := map[string]bool{}
	var peaks []uint64
	failed := 0
	for i := range r.Processes {
		s := r.Processes[i].Head.Summary
		hosts[s.Process.Host] = true
		peaks = append(peaks, s.Main().PeakBytes)
		if s.OOM.Count > 0 {
			failed++
		}
	}
	text := layout.Count(uint64(len(r.Processes))) + " processes"
	if len(hosts) > 1 {
		text += fmt.Sprintf(" on %d hosts", len(hosts))
	}
	text += fmt.Sprintf(", with peaks from %s to %s", layout.Bytes(slices.Min(peaks)), layout.Bytes(slices.Max(peaks)))
	if failed > 0 {
		text += fmt.Sprintf("; %d of them ran out of memory", failed)
	}
	if len(peaks) > 2 {
		text += groupWords(r)
	}
	return text + "."
}

// groupWords describes the groups that a run is divided into.
func groupWords(r *diff.Ranks) string {
	var groups []*diff.RankGroup
	spread := 0.0
	for i := range r.Groups {
		if g := &r.Groups[i]; !g.Some && len(g.Members) > 1 {
			groups, spread = append(groups, g), max(spread, g.Spread)
		}
	}
	within := "alike"
	if spread > 0 {
		within = fmt.Sprintf("alike within %.1f%%", max(100*spread, 0.1))
	}
	switch {
	case len(groups) == 0:
		return ", all of them different"
	case len(groups) == 1 && len(groups[0].Members) == len(r.Processes):
		return ", all " + within
	case len(groups) == 1:
		return fmt.Sprintf("; %s of them are %s", layout.Count(uint64(len(groups[0].Members))), within)
	}
	return fmt.Sprintf("; they form %d groups, each %s", len(groups), within)
}

// maxSentences bounds the processes that have a sentence each.
const maxSentences = 4

// differences explains by what processes differ from those that they should be like.
func differences(r *diff.Ranks) (list []string) {
	for i := range r.Different[:min(len(r.Different), maxSentences)] {
		d := &r.Different[i]
		begin := layout.UpperFirst(ProcessName(r, d.Process))
		if i == 0 {
			begin += " differs most"
		} else {
			begin += " differs"
		}
		list = append(list, fmt.Sprintf("%s. Compared with %s: %s", begin, ProcessName(r, d.Like),
			peakVerdict(d.Diff))+ownGrowth(r, d)+scaleWords(d.Scale))
	}
	if more := len(r.Different) - len(list); more > 0 {
		var others []int
		for _, d := range r.Different[len(list):] {
			others = append(others, d.Process)
		}
		list = append(list, fmt.Sprintf("%s differ, too.", layout.UpperFirst(ProcessNames(r, others))))
	}
	return list
}

// ownGrowth describes the growth of a process unlike that of the one that it is compared with; "" without any.
func ownGrowth(r *diff.Ranks, d *diff.RankDifferent) string {
	if d.Diff.Verdict == nil || len(d.Diff.New.Growing) == 0 {
		return ""
	}
	text := " Its " + growthWords(d.Diff, d.Diff.New.Growing)
	if len(d.Diff.Base.Growing) > 0 {
		return text + fmt.Sprintf(" That of %s grows, too.", ProcessName(r, d.Like))
	}
	return text + notGrowing("That of "+ProcessName(r, d.Like), d.Diff.Base.Growth)
}

// scaleWords explains the difference of two processes that train the same model.
func scaleWords(s *diff.Scale) string {
	size := "larger"
	switch {
	case s == nil:
		return ""
	case !s.Even:
		return fmt.Sprintf(" The model is the same; its activations are %s as large.", layout.Ratio(s.Ratio, 2))
	case s.Ratio < 1:
		size = "smaller"
	}
	return fmt.Sprintf(" The model is the same and every activation %s as large: a %s batch.", layout.Ratio(s.Ratio, 2),
		size)
}

// growingVerdict names processes whose memory grows while that of most does not, unless it was said before.
func growingVerdict(r *diff.Ranks) (list []string) {
	said := map[int]bool{}
	for _, d := range r.Different[:min(len(r.Different), maxSentences)] {
		said[d.Process] = true
	}
	var rest []int
	for _, i := range r.Growing {
		trend := r.Processes[i].Head.Summary.Growing()[0]
		switch {
		case said[i]:
		case len(list) == maxSentences:
			rest = append(rest, i)
		default:
			list = append(list, fmt.Sprintf("The memory of %s grows%s, unlike that of most others.", ProcessName(r, i),
				growthOwner(trend)))
		}
	}
	if len(rest) > 0 {
		list = append(list, fmt.Sprintf("The memory of %s grows, too.", ProcessNames(r, rest)))
	}
	if each := r.Growth.Median; each > 1 {
		list = append(list, fmt.Sprintf("Most processes grow, by %s per iteration.", layout.Bytes(each)))
	}
	return list
}

// growthOwner describes by how much memory grows, and where it is allocated.
func growthOwner(t *report.Trend) (text string) {
	if t.BytesPerIteration > 0 {
		text = " by " + layout.Bytes(t.BytesPerIteration) + " per iteration"
	} else {
		text = " by " + layout.Bytes(t.Bytes)
	}
	if len(t.Owners) > 0 {
		text += " (" + sanitize.Text(t.Owners[0].Site) + ")"
	}
	return text
}

// strayVerdict names processes that hold memory on a device that another one uses, and the remedy.
func strayVerdict(r *diff.Ranks) []string {
	var who []int
	var most diff.RankUse
	for i := range r.Processes {
		for k, use := range r.Processes[i].Stray {
			if k == 0 {
				who = append(who, i)
			}
			if use.Bytes >= most.Bytes {
				most = use
			}
		}
	}
	if len(who) == 0 {
		return nil
	}
	return []string{
		fmt.Sprintf(
			"Memory on another process's device: %s, up to %s on %s. Call torch.cuda.set_device(LOCAL_RANK) before the first use of CUDA, or set CUDA_VISIBLE_DEVICES for each process.",
			ProcessNames(r, who), layout.Bytes(most.Bytes), layout.DeviceName(most.Device))}
}

// foldAbove is up to how many processes each has a row of its own.
const foldAbove = 16

// maxOwnRows bounds the rows of processes that differ, in a folded table.
const maxOwnRows = 16

func writeRanksTable(p *layout.Page, r *diff.Ranks) {
	columns := []layout.Column{{Title: "process"}, {Title: "host", Optional: 3}, {Title: "device", Right: true},
		{Title: "peak", Right: true}, {Title: "vs median", Right: true, Optional: 2}, {Title: "at end", Right: true},
		{Title: "ended", Optional: 1}}
	own, alike := RankParts(r)
	var rows [][]layout.Cell
	for _, members := range alike {
		switch {
		case len(rows) == 2*maxOwnRows:
		case len(members) == 1:
			rows = append(rows, rankRow(r, members[0]))
		default:
			rows = append(rows, groupRow(r, members))
		}
	}
	for _, i := range own {
		rows = append(rows, rankRow(r, i))
	}
	p.Table(columns, rows)
}

// RankParts divides the processes as a table does: some have rows of their own, and the others belong to groups that
// are alike.
func RankParts(r *diff.Ranks) (own []int, alike [][]int) {
	rows := ownRows(r)
	for i := range r.Processes {
		if rows[i] {
			own = append(own, i)
		}
	}
	for g := range r.Groups {
		members := slices.DeleteFunc(slices.Clone(r.Groups[g].Members), func(i int) bool { return rows[i] })
		if len(members) > 0 {
			alike = append(alike, members)
		}
	}
	return own, alike
}

// ownRows are the processes that a table shows one by one.
func ownRows(r *diff.Ranks) map[int]bool {
	own := map[int]bool{}
	if len(r.Processes) <= foldAbove {
		for i := range r.Processes {
			own[i] = true
		}
		return own
	}
	add := func(i int) {
		if len(own) < maxOwnRows {
			own[i] = true
		}
	}
	for _, d := range r.Different {
		add(d.Process)
	}
	for _, i := range r.Growing {
		add(i)
	}
	usual := ending(r.Processes[r.Typical].Head.Summary)
	for i := range r.Processes {
		if len(r.Processes[i].Stray) > 0 || ending(r.Processes[i].Head.Summary) != usual {
			add(i)
		}
	}
	return own
}

// rankRow is the row of one process.
func rankRow(r *diff.Ranks, i int) []layout.Cell {
	q := &r.Processes[i]
	s := q.Head.Summary
	style := layout.Plain
	if s.OOM.Count > 0 || slices.ContainsFunc(r.Different, func(d diff.RankDifferent) bool { return d.Process == i }) {
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
	return []layout.Cell{{Text: ProcessName(r, i), Style: style}, {Text: sanitize.Text(s.Process.Host)}, {Text: device},
		{Text: layout.Bytes(level.PeakBytes), Style: style}, {Text: VsMedian(r, level.PeakBytes), Style: style},
		{Text: layout.Bytes(level.LiveBytes)}, {Text: ending(s), Style: style}}
}

// VsMedian is how far a peak is above or below the median of all processes; "-" of less than three.
func VsMedian(r *diff.Ranks, peak uint64) string {
	median := r.Median
	if median == 0 || len(r.Processes) < 3 {
		return "-"
	}
	return fmt.Sprintf("%+.1f%%", 100*(float64(peak)-float64(median))/float64(median))
}

// groupRow is the row of processes that are alike.
func groupRow(r *diff.Ranks, members []int) []layout.Cell {
	hosts, devices := map[string]bool{}, map[int16]bool{}
	var peaks, live []uint64
	for _, i := range members {
		q := &r.Processes[i]
		hosts[q.Head.Summary.Process.Host], devices[q.Device] = true, true
		peaks = append(peaks, q.Head.Summary.Main().PeakBytes)
		live = append(live, q.Head.Summary.Main().LiveBytes)
	}
	host := sanitize.Text(r.Processes[members[0]].Head.Summary.Process.Host)
	if len(hosts) > 1 {
		host = fmt.Sprintf("%d hosts", len(hosts))
	}
	device := strconv.Itoa(int(r.Processes[members[0]].Device))
	if len(devices) > 1 {
		device = fmt.Sprintf("%d devices", len(devices))
	}
	typical := diff.SpreadOf(peaks).Median
	return []layout.Cell{{Text: ProcessNames(r, members)}, {Text: host}, {Text: device}, {Text: bytesRange(peaks)},
		{Text: VsMedian(r, typical)}, {Text: bytesRange(live)},
		{Text: ending(r.Processes[members[0]].Head.Summary)}}
}

// bytesRange is the lowest and the highest of some sizes; one where both read alike.
func bytesRange(values []uint64) string {
	low, high := layout.Bytes(slices.Min(values)), layout.Bytes(slices.Max(values))
	if low == high {
		return low
	}
	return low + " to " + high
}

// RankRemarks says briefly by what a process differs from the others; empty if it does not.
func RankRemarks(r *diff.Ranks, i int) (list []string) {
	s := r.Processes[i].Head.Summary
	for _, d := range r.Different {
		if d.Process == i {
			list = append(list, "differs from "+ProcessName(r, d.Like))
		}
	}
	if slices.Contains(r.Growing, i) {
		list = append(list, "grows"+growthOwner(s.Growing()[0]))
	}
	for _, use := range r.Processes[i].Stray {
		list = append(list, fmt.Sprintf("%s on %s, which another process uses", layout.Bytes(use.Bytes),
			layout.DeviceName(use.Device)))
	}
	if s.OOM.Count > 0 || ending(s) != ending(r.Processes[r.Typical].Head.Summary) {
		list = append(list, ending(s))
	}
	return list
}

// ending describes briefly how a process ended.
func ending(s *report.Summary) string {
	if s.OOM.Count > 0 {
		return "out of memory"
	}
	switch {
	case s.Process.Ended == report.EndedRunning:
		return "running"
	case s.Process.Ended == report.EndedUnknown:
		return "end unknown"
	case s.Process.ExitStatus != nil:
		return fmt.Sprintf("exit status %d", *s.Process.ExitStatus)
	case s.Process.Signal != "":
		return sanitize.Text(s.Process.Signal)
	case s.Process.Ended == report.EndedKilled:
		return "killed"
	}
	return "exited"
}
