package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"memtrace/analyzer"
	"memtrace/internal/callstack"
	"memtrace/internal/moment"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
	"memtrace/internal/symbol"
)

// DefaultRows is how many rows --help names for -n.
const DefaultRows = 12

// QueryFlags are the flags that report and diff share: what to count, and how to show it. export takes those about
// what to count.
type QueryFlags struct {
	By           []string
	rules        string   // what --by category goes by
	Groups       []string // NAME=FILE|PRESET
	At           string
	Window       WindowFlags
	devices      []string
	focus        string
	ignore       string
	tag          string
	library      string
	own          []string
	Full         bool // report only
	AllProcesses bool // report only
	Details      bool // report only
	Brief        bool // report only
	Entries      int  // of a category; report only
	sum          string

	Rows   int
	asked  func(flag string) bool // a flag was given; nil: none was
	JSON   bool
	noFold bool
	Color  string
	width  int
	ascii  bool
	Output string
	Force  bool
	Strict bool
}

// FilterHelp closes the description of report, diff and the verbs that are like them.
const FilterHelp = `--device, --tag and --library keep what belongs to a device, is below a tag or was
called from a library. --focus keeps, and --ignore drops, what has a tag, name,
module, call, library or thread that a regular expression matches, or a function or
source file anywhere in its call stack.

Files in site-packages and the like belong to a library, others to the program. --own
overrides this: 'accelerate' or 'team/*/models' match whole parts of a path and all
that is below; '!vendor' excludes. The last pattern that matches counts. MEMTRACE_OWN
holds such patterns, too, separated by colons.`

// MomentHelp names the moments that --at takes beside the peak.
const MomentHelp = "teardown, exit, oom, oom:N, mark:NAME, iteration:N, step:N (of memtrace.step()) or a time such as 1.5s"

// Define adds the flags that report and diff share.
func (s *QueryFlags) Define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&s.By, "by", nil, "group by these `NAMES`, separated by commas: "+
		strings.Join(groupingNames(), ", ")+"; 'memtrace help report' explains them")
	s.DefineRules(cmd)
	f.StringVar(&s.At, "at", "", "also show this `MOMENT`: peak, "+MomentHelp)
	s.Window.Define(cmd)
	s.DefineFilters(cmd)
	s.asked = f.Changed
	f.IntVarP(&s.Rows, "rows", "n", DefaultRows, "number of `ROWS` in each table; 0: all")
	f.BoolVar(&s.noFold, "no-fold", false,
		"list repeated modules, layers.{0..7}.mlp, one by one")
	f.BoolVar(&s.JSON, "json", false, "print JSON, with exact bytes and all rows")
	s.DefineLook(cmd)
	f.StringVarP(&s.Output, "output", "o", "", "write to this `FILE` instead of standard output")
	f.BoolVarP(&s.Force, "force", "f", false, "replace that file if it exists")
	f.BoolVar(&s.Strict, "strict", false, "exit with status 2 if a trace is cut, damaged or without its end")
	CompleteFlag(cmd, "by", CompleteList(groupingNames()...))
	CompleteFlag(cmd, "at", Moments)
	CompleteFlag(cmd, "rows", CompleteValues())
	GroupFlags(cmd, GroupWhat, "by")
	GroupFlags(cmd, GroupPart, "at")
	GroupFlags(cmd, Layout, "rows", "no-fold")
	GroupFlags(cmd, Output, "json", "output", "force", "strict")
}

// DefineLook adds the flags about colours and width.
func (s *QueryFlags) DefineLook(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.Color, "color", "auto", "use colours: `WHEN` is auto, always or never")
	f.IntVar(&s.width, "width", 0, "wrap at this number of `COLUMNS` (default: the terminal's, or 100)")
	f.BoolVar(&s.ascii, "ascii", false, "draw with ASCII characters only")
	CompleteFlag(cmd, "color", CompleteValues("auto", "always", "never"))
	CompleteFlag(cmd, "width", CompleteValues())
	GroupFlags(cmd, Layout, "color", "width", "ascii")
}

// DefineFilters adds the flags that leave memory out.
func (s *QueryFlags) DefineFilters(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&s.devices, "device", nil, "only this device `INDEX` (repeatable)")
	f.StringVar(&s.focus, "focus", "", "only what matches this `REGEX` in its names or call stack")
	f.StringVar(&s.ignore, "ignore", "", "nothing that matches this `REGEX`")
	f.StringVar(&s.tag, "tag", "", "only this `TAG` and the tags below it")
	f.StringVar(&s.library, "library", "", "only calls from libraries with `NAME` in their name")
	f.StringArrayVar(&s.own, "own", nil,
		"treat files below `GLOB` as the program's own code; with '!' before it, as a library's (repeatable)")
	names := []string{"device", "focus", "ignore", "tag", "library", "own"}
	for _, name := range names {
		CompleteFlag(cmd, name, CompleteValues())
	}
	GroupFlags(cmd, Filters, names...)
}

// Check turns the flags into what to count and how to show it, before any trace is read.
func (s *QueryFlags) Check(c *Console) (analyzer.Options, layout.Options, error) {
	options, err := s.Options()
	if err != nil {
		return options, layout.Options{}, err
	}
	style, err := s.Style(s.OutputFile(c))
	return options, style, err
}

// Options checks the flags about what to count.
func (s *QueryFlags) Options() (analyzer.Options, error) {
	o := analyzer.Options{Question: analyzer.Question{Groupings: s.By, FullStacks: s.Full}, Tag: s.tag,
		Library: s.library, Symbols: SymbolOptions(), Own: OwnFlags(s.own)}
	var err error
	for _, name := range s.By {
		if !slices.Contains(groupingNames(), name) {
			return o, UsageErrorf("--by %s: choose from %s", name, strings.Join(groupingNames(), ", "))
		}
	}
	if err := callstack.CheckOwn(o.Own); err != nil {
		return o, UsageErrorf("--own or MEMTRACE_OWN: %w", err)
	}
	if err := s.addRules(&o); err != nil {
		return o, err
	}
	for _, text := range s.devices {
		index, err := strconv.ParseInt(text, 10, 16)
		if err != nil || index < 0 {
			return o, UsageErrorf("--device %s: name the device's number, such as 0", text)
		}
		o.Devices = append(o.Devices, int16(index))
	}
	if o.At, err = moment.Parse(s.At); err != nil {
		return o, UsageErrorf("--at: %w", err)
	}
	if o.From, o.To, err = s.Window.moments(); err != nil {
		return o, err
	}
	if o.Focus, err = parseRegexp("--focus", s.focus); err != nil {
		return o, err
	}
	if o.Ignore, err = parseRegexp("--ignore", s.ignore); err != nil {
		return o, err
	}
	return o, nil
}

// OwnFlags are those of MEMTRACE_OWN, then those of the flags, which win.
func OwnFlags(flags []string) []string {
	list := slices.DeleteFunc(filepath.SplitList(os.Getenv("MEMTRACE_OWN")), func(text string) bool {
		return text == ""
	})
	return append(list, flags...)
}

// Form is what a report with these flags is written as.
func (s *QueryFlags) Form(style layout.Options) sanitize.Form {
	switch {
	case s.JSON:
		return sanitize.JSON
	case style.Color:
		return sanitize.Colored
	}
	return sanitize.Lines
}

func parseRegexp(flag, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, UsageErrorf("%s: %w", flag, err)
	}
	return re, nil
}

// Style checks the flags about how to show it. out is where the report goes.
func (s *QueryFlags) Style(out *os.File) (layout.Options, error) {
	o := layout.Options{Rows: s.Rows, Width: s.width, ASCII: s.ascii, Unfolded: s.noFold, FullStacks: s.Full,
		Details: s.Details || s.Full}
	terminal := out != nil && term.IsTerminal(int(out.Fd()))
	switch s.Color {
	case "always":
		o.Color = true
	case "never":
	case "auto":
		o.Color = terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	default:
		return o, UsageErrorf("--color %s: choose auto, always or never", s.Color)
	}
	switch {
	case s.Rows < 0:
		return o, UsageErrorf("-n %d: must be a number of rows, or 0 for all", s.Rows)
	case s.asked == nil || !s.asked("rows"):
		o.Rows = 0 // render's word for as many as fit
	case s.Rows == 0:
		o.Rows = -1 // render's word for all
	}
	if s.width != 0 && (s.width < WidthMin || s.width > WidthMax) {
		return o, UsageErrorf("--width %d: choose between %d and %d columns", s.width, WidthMin,
			WidthMax)
	}
	if s.width == 0 {
		o.Width = ReportWidth(out, terminal)
	}
	return o, nil
}

// OutputFile is the file that decides about colours and width: nil for -o FILE.
func (s *QueryFlags) OutputFile(c *Console) *os.File {
	if s.Output == "" || s.Output == "-" {
		return c.Stdout
	}
	return nil
}

// SymbolOptions is how the command looks for names.
func SymbolOptions() symbol.Options {
	return symbol.Options{Cache: symbol.DefaultCache(), Packages: true}
}

// CheckBrief rejects flags that --brief excludes.
func (f *QueryFlags) CheckBrief(views int) error {
	switch {
	case !f.Brief:
		return nil
	case f.JSON:
		return UsageErrorf("--brief and --json exclude each other: both print JSON")
	case views > 0 || f.Details || f.Full:
		return UsageErrorf("--brief excludes --view, --details and --full-stacks: they show more than it may print")
	}
	return nil
}
