package top

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"memtrace/internal/render/layout"
)

// patience is how long a picture waits for figures: most traces are read on in a few milliseconds.
const patience = 300 * time.Millisecond

// order is what processes are sorted by.
type order uint8

const (
	orderByMemory order = iota
	orderByPID
	orderByCommand
	orderCount
)

// divisions are what owners may be grouped by with a key; the first one is what a report would choose.
var divisions = []string{"", categoryGrouping, "module", "inner", "site", "tag", "operator", "library"}

var orderNames = [orderCount]string{"memory", "pid", "command"}

// view is the state of the full screen. Sampling runs beside, one sample at a time, so that keys are answered while
// a driver is slow.
type view struct {
	sampler *sampler
	host    *Host
	flags   *Options
	sample  sample
	ready   bool // the first sample has come

	width, height int
	selected      int // pid
	opened        map[int]bool
	order         order
	by            string // what owners are grouped by, one of divisions or of the flag
	help          bool
	command       bool // the footer names the command that shows the selected process's page
	offset        int  // first line shown
}

// sampled brings a sample; due means that another is due.
type (
	sampled struct{ sample sample }
	due     struct{}
)

// fillScreen fills the screen until the user ends it. Whatever happens, a panic included, the terminal is restored.
func (h *Host) fillScreen(sampler *sampler, flags *Options) error {
	keys, err := h.keyboard()
	if err != nil {
		return err
	}
	defer keys.Close()
	view := &view{host: h, sampler: sampler, flags: flags, by: flags.By, opened: make(map[int]bool),
		width: 80, height: 24}
	program := tea.NewProgram(view, tea.WithInput(keys), tea.WithOutput(h.Stdout))
	_, err = program.Run()
	if errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("show the screen: %w; --once prints the same without one", err)
	}
	return nil
}

// keyboard returns the terminal that keys come from: standard input may be a file.
func (h *Host) keyboard() (*os.File, error) {
	if file, ok := h.Stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return file, nil
	}
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return nil, fmt.Errorf("listen to keys: %w; --once prints the same without them", err)
	}
	return terminal, nil
}

// Init implements tea.Model.
func (v *view) Init() tea.Cmd { return v.look }

func (v *view) look() tea.Msg { return sampled{v.sampler.sample(patience)} }

// Update implements tea.Model.
func (v *view) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		v.width, v.height = msg.Width, msg.Height
	case sampled:
		v.take(msg.sample)
		return v, tea.Tick(v.pause(), func(time.Time) tea.Msg { return due{} })
	case due:
		return v, v.look
	case tea.KeyPressMsg:
		return v, v.key(msg.String())
	}
	return v, nil
}

// pause is how long to wait for the next look: less until the first figures are there.
func (v *view) pause() time.Duration {
	for i := range v.sample.Processes {
		if v.sample.Processes[i].Reading != nil {
			return v.flags.Interval / 4
		}
	}
	return v.flags.Interval
}

func (v *view) take(s sample) {
	first := !v.ready
	v.sample, v.ready = s, true
	v.sort()
	if first { // the most common view is open at once
		for i := range s.Processes {
			if s.Processes[i].Traced {
				v.opened[s.Processes[i].PID] = true
			}
		}
	}
	if pids := v.pids(); len(pids) > 0 && !slices.Contains(pids, v.selected) {
		v.selected = pids[0]
	}
}

func (v *view) sort() {
	slices.SortStableFunc(v.sample.Processes, func(a, b process) int {
		switch v.order {
		case orderByPID:
			return cmp.Compare(a.PID, b.PID)
		case orderByCommand:
			return cmp.Or(strings.Compare(a.Command, b.Command), cmp.Compare(a.PID, b.PID))
		}
		return cmp.Or(cmp.Compare(b.weight(), a.weight()), cmp.Compare(a.PID, b.PID))
	})
}

// key acts on a key press.
func (v *view) key(name string) tea.Cmd {
	switch name {
	case "q", "ctrl+c", "esc":
		if v.help && name == "esc" {
			v.help = false
			return nil
		}
		return tea.Quit
	case "?", "h":
		v.help = !v.help
	case "up", "k":
		v.move(-1)
	case "down", "j":
		v.move(1)
	case "home", "g":
		v.move(-len(v.sample.Processes))
	case "end", "G":
		v.move(len(v.sample.Processes))
	case "enter", "space", " ", "left", "right":
		v.opened[v.selected] = !v.opened[v.selected]
	case "a":
		v.openAll()
	case "b":
		v.divide()
	case "w":
		v.command = !v.command
	case "s":
		v.order = (v.order + 1) % orderCount
		v.sort()
	}
	return nil
}

func (v *view) openAll() {
	open := false
	for i := range v.sample.Processes {
		open = open || v.sample.Processes[i].Traced && !v.opened[v.sample.Processes[i].PID]
	}
	for i := range v.sample.Processes {
		v.opened[v.sample.Processes[i].PID] = open
	}
}

// divide chooses the next division, for all processes.
func (v *view) divide() {
	v.by = divisions[(slices.Index(divisions, v.by)+1)%len(divisions)]
	by := v.by
	v.sampler.by.Store(&by)
}

// pids lists the processes in the order of the screen, each once.
func (v *view) pids() []int {
	var list []int
	for _, l := range v.page() {
		if l.pid != 0 && !slices.Contains(list, l.pid) {
			list = append(list, l.pid)
		}
	}
	return list
}

func (v *view) move(by int) {
	pids := v.pids()
	if len(pids) == 0 {
		return
	}
	at := max(slices.Index(pids, v.selected), 0)
	v.selected = pids[min(max(at+by, 0), len(pids)-1)]
}

func (v *view) page() []line {
	page := page{sample: v.sample, width: max(v.width-2, 20), rows: v.flags.Rows, ascii: v.flags.ASCII,
		open: func(pid int) bool {
			return v.opened[pid]
		}}
	return page.lines()
}

// View implements tea.Model.
func (v *view) View() tea.View {
	view := tea.NewView(v.screen())
	view.AltScreen = true
	return view
}

func (v *view) screen() string {
	if v.help {
		return ansi.Wordwrap(helpText, v.width, "")
	}
	if !v.ready {
		return "memtrace top: reading ..."
	}
	lines := v.page()
	room := max(v.height-1, 1)
	v.scroll(lines, room)
	var b strings.Builder
	for i := range room {
		if at := v.offset + i; at < len(lines) {
			b.WriteString(v.mark(&lines[at]))
		}
		b.WriteByte('\n')
	}
	b.WriteString("\x1b[2m" + ansi.Truncate(v.footer(len(lines), room), v.width, "") + "\x1b[m")
	return b.String()
}

// mark puts the selection's sign before a line: a character, since colours may be off.
func (v *view) mark(l *line) string {
	if l.pid != 0 && l.pid == v.selected {
		return "\x1b[1m> " + l.text(false) + "\x1b[m"
	}
	return "  " + l.text(true)
}

func (v *view) footer(lines, room int) string {
	if v.command {
		return v.pageCommand()
	}
	arrows := "↑↓"
	if v.flags.ASCII {
		arrows = "jk"
	}
	text := fmt.Sprintf("q quit  %s select  enter owners  s sort: %s  b by: %s  w browser  ? help", arrows,
		orderNames[v.order], cmp.Or(v.by, "default"))
	if lines > room {
		text += fmt.Sprintf("  lines %d-%d of %d", v.offset+1, min(v.offset+room, lines), lines)
	}
	return text
}

// pageCommand is what to type for a page of the selected process that shows what is new.
func (v *view) pageCommand() string {
	for i := range v.sample.Processes {
		if p := &v.sample.Processes[i]; p.PID == v.selected && p.Trace != "" {
			return fmt.Sprintf("to see process %d in a browser, type: memtrace serve %s", p.PID,
				layout.ShellWord(v.host.ShortPath(p.Trace)))
		}
	}
	return "process " + strconv.Itoa(v.selected) + " is not recorded, or its trace was not found: it has no page"
}

// scroll keeps the selected process, and as many of its owners as fit, on the screen.
func (v *view) scroll(lines []line, room int) {
	first := slices.IndexFunc(lines, func(l line) bool { return l.pid != 0 && l.pid == v.selected })
	if first < 0 {
		first = 0
	}
	last := first
	for last+1 < len(lines) && lines[last+1].pid == 0 && len(lines[last+1].pieces) > 0 &&
		lines[last+1].pieces[0].text != "" {
		last++
	}
	if last >= v.offset+room {
		v.offset = last - room + 1
	}
	if first < v.offset {
		v.offset = first
	}
	if len(lines) <= room || first < room && last < room {
		v.offset = 0
	}
	v.offset = min(v.offset, max(len(lines)-room, 0))
}

const helpText = `memtrace top

  up, down, k, j      select a process
  home, end, g, G     select the first, the last one
  enter, space        show or hide its owners
  a                   show or hide all owners
  s                   sort by memory, pid or command
  b                   divide by category, module, line, tag, operator or library
  w                   show the command that opens the process in a browser
  ?                   leave this help
  q, ctrl-c           quit

"on device" is the memory that the driver reports for a process; "recorded" is what its trace
accounts for. The difference is listed below the owners: the CUDA context, code and the driver's
reserves. The line above the owners gives their age: reading a long trace takes time.`
