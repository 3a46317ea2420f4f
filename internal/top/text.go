package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"memtrace/analyzer/render/layout"
	"memtrace/analyzer/render/phrase"
	"memtrace/analyzer/report"
	"memtrace/internal/control"
	"memtrace/internal/visible"
)

const (
	DefaultRows = 8 // of owners of each process
	topBarWidth = 16
)

// topStyle is how a piece of a line is painted; what it says is always said in words too.
type topStyle string

const (
	topPlain  topStyle = ""
	topStrong topStyle = "1"
	topFaint  topStyle = "2"
	topGreen  topStyle = "32"
	topYellow topStyle = "33"
)

// topPiece is a piece of a line in one style.
type topPiece struct {
	style topStyle
	text  string
}

// topLine is one line of the view. pid is that of the process whose row it is, 0 for every other line.
type topLine struct {
	pieces []topPiece
	pid    int
}

func (l *topLine) add(style topStyle, format string, args ...any) {
	l.pieces = append(l.pieces, topPiece{style, fmt.Sprintf(format, args...)})
}

func (l *topLine) text(color bool) string {
	var b strings.Builder
	for _, p := range l.pieces {
		if color && p.style != topPlain && p.text != "" {
			b.WriteString("\x1b[" + string(p.style) + "m" + p.text + "\x1b[m")
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// topPage lays a sample out in lines. It is the same for the full screen and for plain output.
type topPage struct {
	sample topSample
	width  int
	rows   int                // of owners, 0 for all
	open   func(pid int) bool // whose owners are shown
	ascii  bool

	list []topLine
}

func (t *topPage) line(style topStyle, format string, args ...any) {
	var l topLine
	l.add(style, format, args...)
	t.put(l)
}

// put adds a line, cut where the page ends.
func (t *topPage) put(l topLine) {
	room := t.width
	for i := range l.pieces {
		p := &l.pieces[i]
		p.text = ansi.Truncate(p.text, room, "")
		room -= ansi.StringWidth(p.text)
	}
	t.list = append(t.list, l)
}

// lines returns the whole page.
func (t *topPage) lines() []topLine {
	t.heading()
	if t.sample.NVML.Problem != "" {
		t.wrapped(topYellow, t.sample.NVML.Problem)
	}
	shown := map[int]bool{}
	for i := range t.sample.Devices {
		t.line(topPlain, "")
		t.device(&t.sample.Devices[i], shown)
	}
	t.elsewhere(shown)
	if len(t.sample.Processes) == 0 {
		t.line(topPlain, "")
		where := ""
		if t.sample.folder != "" {
			where = " with its control socket in " + t.sample.folder + " (" + control.FolderVariable + ")"
		}
		t.wrapped(topPlain, "No process uses a device, and none is recorded"+where+
			". To record a program type: memtrace run -- PROGRAM")
	}
	return t.list
}

func (t *topPage) heading() {
	traced := 0
	for i := range t.sample.Processes {
		if t.sample.Processes[i].Traced {
			traced++
		}
	}
	var l topLine
	l.add(topStrong, "memtrace top")
	l.add(topPlain, "  %s", t.sample.Time.Format("15:04:05"))
	if n := t.sample.NVML; n.Available {
		l.add(topPlain, "  driver %s", visible.Text(n.Driver))
		if n.CUDA != "" {
			l.add(topPlain, ", CUDA %s", n.CUDA)
		}
	}
	l.add(topPlain, "  %s, %d recorded", topCount(len(t.sample.Processes), "process", "processes"), traced)
	t.put(l)
}

func topCount(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// wrapped breaks a sentence at blanks, instead of losing its end. All lines begin where the first one does.
func (t *topPage) wrapped(style topStyle, text string) {
	sentence := strings.TrimLeft(text, " ")
	indent := text[:len(text)-len(sentence)]
	for part := range strings.SplitSeq(ansi.Wordwrap(visible.Text(sentence), max(t.width-len(indent), 20), ""), "\n") {
		t.line(style, "%s%s", indent, part)
	}
}

func (d *topDevice) title() string {
	if d.Instance != nil {
		return fmt.Sprintf("MIG %d/%d", d.Index, *d.Instance)
	}
	return fmt.Sprintf("GPU %d", d.Index)
}

func (t *topPage) device(d *topDevice, shown map[int]bool) {
	var l topLine
	l.add(topStrong, "%s", d.title())
	l.add(topPlain, "  %s  ", visible.Text(d.Name))
	if d.Used != nil && d.Total != nil {
		l.add(topGreen, "%s", t.bar(*d.Used, *d.Total))
		l.add(topPlain, " %s of %s used, %s free", layout.Bytes(*d.Used), layout.Bytes(*d.Total), topBytes(d.Free))
		if d.Reserved != nil && *d.Reserved > 0 {
			l.add(topPlain, ", %s kept by the driver", layout.Bytes(*d.Reserved))
		}
	} else {
		l.add(topPlain, "memory not reported")
	}
	if d.Utilization != nil {
		l.add(topPlain, ", busy %d%%", *d.Utilization)
	}
	t.put(l)
	for _, problem := range d.Problems {
		t.wrapped(topYellow, "  "+problem)
	}
	if d.MIG {
		t.line(topFaint, "  divided into MIG instances; processes are listed under them")
		return
	}
	var on []*topProcess
	for i := range t.sample.Processes {
		if p := &t.sample.Processes[i]; p.on(d) != nil {
			on = append(on, p)
		}
	}
	if len(on) == 0 {
		t.line(topFaint, "  no process")
		return
	}
	t.titles()
	for _, p := range on {
		t.process(p, topBytes(p.on(d).Used), shown)
	}
}

// elsewhere lists the processes that no device names: all of them without the management library, in some containers
// even with it.
func (t *topPage) elsewhere(shown map[int]bool) {
	var rest []*topProcess
	for i := range t.sample.Processes {
		if p := &t.sample.Processes[i]; len(p.Devices) == 0 {
			rest = append(rest, p)
		}
	}
	if len(rest) == 0 {
		return
	}
	t.line(topPlain, "")
	if t.sample.NVML.Available {
		t.line(topStrong, "Recorded processes not listed by a device")
	} else {
		t.line(topStrong, "Recorded processes")
	}
	t.titles()
	for _, p := range rest {
		t.process(p, "not reported", shown)
	}
}

const topColumns = "  %9s  %-10s %12s %12s  %s"

func (t *topPage) titles() {
	t.line(topFaint, topColumns, "pid", "user", "on device", "recorded", "command")
}

// process prints a row, and behind its first one the owners.
func (t *topPage) process(p *topProcess, used string, shown map[int]bool) {
	recorded := "no"
	switch {
	case p.Owners != nil:
		recorded = p.Owners.recorded(t.ascii)
	case p.Reading != nil:
		recorded = fmt.Sprintf("reading %.0f%%", 100**p.Reading)
	case p.Traced:
		recorded = "unknown"
	}
	l := topLine{pid: p.PID}
	l.add(topPlain, topColumns, fmt.Sprint(p.PID), ansi.Truncate(visible.Text(p.User), 10, ""), used, recorded,
		visible.Text(p.Command))
	t.put(l)
	switch {
	case !p.Traced || !t.open(p.PID):
	case shown[p.PID]:
		t.line(topFaint, "             owners are listed under its first device")
	case p.Problem != "":
		t.wrapped(topYellow, "             "+p.Problem)
	case p.Owners != nil:
		t.owners(p)
	}
	shown[p.PID] = true
}

// topOwner is a row of owners.
type topOwner struct {
	name  string
	bytes uint64
}

func (t *topPage) owners(p *topProcess) {
	o := p.Owners
	what := fmt.Sprintf("owners by %s, as of %s", o.By, topAge(t.sample.Time.Sub(o.ReadAt)))
	if o.Level == "framework" {
		what += fmt.Sprintf("; %s in blocks of %s", layout.Bytes(o.FrameworkBytes), o.frameworkName())
	}
	t.line(topFaint, "             %s", what)
	t.overTime(o)
	list := t.ownerList(p)
	var whole, largest uint64
	for _, row := range list {
		whole += row.bytes
		largest = max(largest, row.bytes)
	}
	indent, names, wide := t.ownerNames(list)
	for i, row := range list {
		var l topLine
		l.add(topPlain, "%*s%12s  %5.1f%%  ", indent, "", layout.Bytes(row.bytes), 100*float64(row.bytes)/
			float64(max(whole, 1)))
		if wide {
			l.add(topGreen, "%s", t.bar(row.bytes, largest))
			l.add(topPlain, "  ")
		}
		l.add(topPlain, "%s", names[i])
		t.put(l)
	}
	if len(list) == 0 {
		t.line(topFaint, "             nothing is live")
	}
	t.remarks(p)
}

// overTime draws the main level since its first allocation in one line.
func (t *topPage) overTime(o *topOwners) {
	const indent, most, least = 13, 40, 8
	if o.heights == nil {
		return
	}
	words := fmt.Sprintf("  since %s, peak %s at %s", layout.Moment(o.heights.FromNS), layout.Bytes(o.peak.PeakBytes),
		layout.Moment(o.peak.PeakTimeNS))
	columns := min(most, len(o.heights.PeakBytes), t.width-indent-len(words))
	if columns < least {
		return
	}
	var l topLine
	l.add(topPlain, "%*s", indent, "")
	l.add(topGreen, "%s", layout.Sparkline(o.heights.PeakBytes, columns, t.ascii))
	l.add(topFaint, "%s", words)
	t.put(l)
}

// ownerNames returns the rows' names as they fit behind indent, sizes and shares, and whether there is room for bars as
// well. A narrow page goes without these, for names say more.
func (t *topPage) ownerNames(list []topOwner) (indent int, names []string, wide bool) {
	const figures, bars, enough = 22, 18, 30
	indent, wide = 13, t.width >= 13+figures+bars+enough
	room := t.width - indent - figures - bars
	if !wide {
		indent = 2
		room = t.width - indent - figures
	}
	for _, row := range list {
		names = append(names, visible.Text(row.name))
	}
	return indent, layout.ClipApart(names, max(room, 1), t.ascii), wide
}

// ownerList turns the ledger into rows, the rest of them as one, and adds what the device says beyond.
func (t *topPage) ownerList(p *topProcess) []topOwner {
	var list []topOwner
	for _, r := range p.Owners.Rows {
		list = append(list, topOwner{ownerName(p.Owners, r), r.Bytes})
	}
	slices.SortStableFunc(list, func(a, b topOwner) int { return cmp.Compare(b.bytes, a.bytes) })
	if t.rows > 0 && len(list) > t.rows {
		rest := topOwner{name: phrase.MoreRows(p.Owners.By, len(list)-t.rows)}
		for _, row := range list[t.rows:] {
			rest.bytes += row.bytes
		}
		list = append(list[:t.rows:t.rows], rest)
	}
	if p.Untracked != nil && *p.Untracked > 0 {
		list = append(list, topOwner{"not in the trace (context, code, reserves)", uint64(*p.Untracked)})
	}
	return list
}

func ownerName(o *topOwners, r report.LedgerRow) string {
	name := r.Key
	if r.Label != "" {
		name = r.Label
	}
	switch r.Owner {
	case report.OwnerBlocks:
		return phrase.KeyName(o.By, name)
	case report.OwnerSlack:
		return o.frameworkName() + " reserved, unused (slack)"
	case report.OwnerOutside:
		return name + " (driver)"
	}
	return name
}

// remarks says what the rows leave out.
func (t *topPage) remarks(p *topProcess) {
	o := p.Owners
	if p.Untracked != nil && *p.Untracked < 0 {
		t.line(topYellow, "             the trace counts %s more than the device: it may be a moment ahead",
			layout.Bytes(uint64(-*p.Untracked)))
	}
	for _, name := range slices.Sorted(maps.Keys(o.OtherBytes)) {
		t.line(topFaint, "             also %s of %s memory", layout.Bytes(o.OtherBytes[name]), name)
	}
	if o.Trend != nil {
		t.wrapped(topYellow, "             "+phrase.Growth(o.Trend, o.Level))
	}
	if o.LostRecords > 0 {
		t.wrapped(topYellow, "             "+o.lostWords())
	}
	if o.Problem != "" {
		t.wrapped(topYellow, "             "+o.Problem)
	}
}

func topAge(d time.Duration) string {
	if d < time.Second {
		return "now"
	}
	return fmt.Sprintf("%s ago", d.Round(time.Second))
}

// bar draws a part of a whole.
func (t *topPage) bar(part, whole uint64) string {
	full, empty := "█", "░"
	if t.ascii {
		full, empty = "#", "."
	}
	n := 0
	if whole > 0 {
		n = min(topBarWidth, int(float64(part)/float64(whole)*topBarWidth+0.5))
	}
	return strings.Repeat(full, n) + strings.Repeat(empty, topBarWidth-n)
}

// topBytes writes a size, or that it is not reported.
func topBytes(n *uint64) string {
	if n == nil {
		return "not reported"
	}
	return layout.Bytes(*n)
}
