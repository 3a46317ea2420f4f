package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"memtrace/internal/control"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

const (
	DefaultRows = 8 // of owners of each process
	barWidth    = 16
)

// style is how a piece of a line is painted; its meaning is always in the text too.
type style string

const (
	stylePlain  style = ""
	styleStrong style = "1"
	styleFaint  style = "2"
	styleGreen  style = "32"
	styleYellow style = "33"
)

// piece is a piece of a line in one style.
type piece struct {
	style style
	text  string
}

// line is one line of the view. pid is that of the process whose row it is, 0 for every other line.
type line struct {
	pieces []piece
	pid    int
}

func (l *line) add(style style, format string, args ...any) {
	l.pieces = append(l.pieces, piece{style, fmt.Sprintf(format, args...)})
}

func (l *line) text(color bool) string {
	var b strings.Builder
	for _, p := range l.pieces {
		if color && p.style != stylePlain && p.text != "" {
			b.WriteString("\x1b[" + string(p.style) + "m" + p.text + "\x1b[m")
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// page lays a sample out in lines. It is the same for the full screen and for plain output.
type page struct {
	sample sample
	width  int
	rows   int                // of owners, 0 for all
	open   func(pid int) bool // whose owners are shown
	ascii  bool

	list []line
}

func (t *page) line(style style, format string, args ...any) {
	var l line
	l.add(style, format, args...)
	t.put(l)
}

// put adds a line, cut where the page ends.
func (t *page) put(l line) {
	room := t.width
	for i := range l.pieces {
		p := &l.pieces[i]
		p.text = ansi.Truncate(p.text, room, "")
		room -= ansi.StringWidth(p.text)
	}
	t.list = append(t.list, l)
}

// lines returns the whole page.
func (t *page) lines() []line {
	t.heading()
	if t.sample.NVML.Problem != "" {
		t.wrapped(styleYellow, t.sample.NVML.Problem)
	}
	shown := map[int]bool{}
	for i := range t.sample.Devices {
		t.line(stylePlain, "")
		t.device(&t.sample.Devices[i], shown)
	}
	t.elsewhere(shown)
	if len(t.sample.Processes) == 0 {
		t.line(stylePlain, "")
		where := ""
		if t.sample.folder != "" {
			where = " with its control socket in " + t.sample.folder + " (" + control.FolderVariable + ")"
		}
		t.wrapped(stylePlain, "No process uses a device, and none is recorded"+where+
			". To record a program type: memtrace run -- PROGRAM")
	}
	return t.list
}

func (t *page) heading() {
	traced := 0
	for i := range t.sample.Processes {
		if t.sample.Processes[i].Traced {
			traced++
		}
	}
	var l line
	l.add(styleStrong, "memtrace top")
	l.add(stylePlain, "  %s", t.sample.Time.Format("15:04:05"))
	if n := t.sample.NVML; n.Available {
		l.add(stylePlain, "  driver %s", sanitize.Text(n.Driver))
		if n.CUDA != "" {
			l.add(stylePlain, ", CUDA %s", n.CUDA)
		}
	}
	l.add(stylePlain, "  %s, %d recorded", formatCount(len(t.sample.Processes), "process", "processes"), traced)
	t.put(l)
}

func formatCount(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// wrapped breaks a sentence at blanks, instead of losing its end. All lines begin where the first one does.
func (t *page) wrapped(style style, text string) {
	sentence := strings.TrimLeft(text, " ")
	indent := text[:len(text)-len(sentence)]
	for part := range strings.SplitSeq(ansi.Wordwrap(sanitize.Text(sentence), max(t.width-len(indent), 20), ""), "\n") {
		t.line(style, "%s%s", indent, part)
	}
}

func (d *device) title() string {
	if d.Instance != nil {
		return fmt.Sprintf("MIG %d/%d", d.Index, *d.Instance)
	}
	return fmt.Sprintf("GPU %d", d.Index)
}

func (t *page) device(d *device, shown map[int]bool) {
	var l line
	l.add(styleStrong, "%s", d.title())
	l.add(stylePlain, "  %s  ", sanitize.Text(d.Name))
	if d.Used != nil && d.Total != nil {
		l.add(styleGreen, "%s", t.bar(*d.Used, *d.Total))
		l.add(stylePlain, " %s of %s used, %s free", layout.Bytes(*d.Used), layout.Bytes(*d.Total), formatBytes(d.Free))
		if d.Reserved != nil && *d.Reserved > 0 {
			l.add(stylePlain, ", %s kept by the driver", layout.Bytes(*d.Reserved))
		}
	} else {
		l.add(stylePlain, "memory not reported")
	}
	if d.Utilization != nil {
		l.add(stylePlain, ", busy %d%%", *d.Utilization)
	}
	t.put(l)
	for _, problem := range d.Problems {
		t.wrapped(styleYellow, "  "+problem)
	}
	if d.MIG {
		t.line(styleFaint, "  divided into MIG instances; processes are listed under them")
		return
	}
	var on []*process
	for i := range t.sample.Processes {
		if p := &t.sample.Processes[i]; p.on(d) != nil {
			on = append(on, p)
		}
	}
	if len(on) == 0 {
		t.line(styleFaint, "  no process")
		return
	}
	t.titles()
	for _, p := range on {
		t.process(p, formatBytes(p.on(d).Used), shown)
	}
}

// elsewhere lists the processes that no device names: all of them without the management library, in some containers
// even with it.
func (t *page) elsewhere(shown map[int]bool) {
	var rest []*process
	for i := range t.sample.Processes {
		if p := &t.sample.Processes[i]; len(p.Devices) == 0 {
			rest = append(rest, p)
		}
	}
	if len(rest) == 0 {
		return
	}
	t.line(stylePlain, "")
	if t.sample.NVML.Available {
		t.line(styleStrong, "Recorded processes not listed by a device")
	} else {
		t.line(styleStrong, "Recorded processes")
	}
	t.titles()
	for _, p := range rest {
		t.process(p, "not reported", shown)
	}
}

const processColumns = "  %9s  %-10s %12s %12s  %s"

func (t *page) titles() {
	t.line(styleFaint, processColumns, "pid", "user", "on device", "recorded", "command")
}

// process prints a row, and after its first line the owners.
func (t *page) process(p *process, used string, shown map[int]bool) {
	recorded := "no"
	switch {
	case p.Owners != nil:
		recorded = p.Owners.recorded(t.ascii)
	case p.Reading != nil:
		recorded = fmt.Sprintf("reading %.0f%%", 100**p.Reading)
	case p.Traced:
		recorded = "unknown"
	}
	l := line{pid: p.PID}
	l.add(stylePlain, processColumns, fmt.Sprint(p.PID), ansi.Truncate(sanitize.Text(p.User), 10, ""), used, recorded,
		sanitize.Text(p.Command))
	t.put(l)
	switch {
	case !p.Traced || !t.open(p.PID):
	case shown[p.PID]:
		t.line(styleFaint, "             owners are listed under its first device")
	case p.Problem != "":
		t.wrapped(styleYellow, "             "+p.Problem)
	case p.Owners != nil:
		t.owners(p)
	}
	shown[p.PID] = true
}

func formatAge(d time.Duration) string {
	if d < time.Second {
		return "now"
	}
	return fmt.Sprintf("%s ago", d.Round(time.Second))
}

// bar draws a part of a whole.
func (t *page) bar(part, whole uint64) string {
	full, empty := "█", "░"
	if t.ascii {
		full, empty = "#", "."
	}
	n := 0
	if whole > 0 {
		n = min(barWidth, int(float64(part)/float64(whole)*barWidth+0.5))
	}
	return strings.Repeat(full, n) + strings.Repeat(empty, barWidth-n)
}

// formatBytes writes a size, or that it is not reported.
func formatBytes(n *uint64) string {
	if n == nil {
		return "not reported"
	}
	return layout.Bytes(*n)
}
