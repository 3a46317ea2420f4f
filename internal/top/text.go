package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"memtrace/analyzer/render/layout"
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
