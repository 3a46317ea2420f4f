package callstack

import (
	"fmt"
	"regexp"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/rules"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// Frame is a function of a call stack, as reports show it.
type Frame struct {
	symbol.Frame
	User  bool   // the program's own code
	Fold  fold   // how useful it is to readers who did not write the libraries
	short string // its name in folded stacks; "" if unchanged
}

// IsPython reports whether the frame is the interpreter's.
func (f *Frame) IsPython() bool { return f.Kind == symbol.Python }

// Matches reports whether a filter means the frame: by its function, however it is written, by its file, or by both its
// file and line, written file:line.
func (f *Frame) Matches(re *regexp.Regexp) bool {
	if re.MatchString(f.Title()) || re.MatchString(f.Function) || re.MatchString(f.FullFunction) {
		return true
	}
	return f.File != "" && (re.MatchString(f.File) ||
		f.Line > 0 && re.MatchString(fmt.Sprintf("%s:%d", f.File, f.Line)))
}

// Stack is the whole stack of an event: native and Python frames in one, innermost first.
type Stack struct {
	All    []*Frame
	Shown  []*Frame // without folded library frames; never empty unless all is
	Site   *Frame   // the program's line that allocated; nil without a stack
	Key    string   // of the site
	native bool     // it has native frames
	own    int      // number of the event's own frames in all; the forward pass of a gradient follows

	Backward string // the prefix of the names of places in that forward pass
}

// Stacks names and merges the stacks of a trace. Every address, Python frame and pair of stacks is resolved once.
type Stacks struct {
	Tables  *trace.Tables
	links   *LinkedStacks
	Info    func() trace.Info
	Options symbol.Options
	Own     []string // patterns of the program's own files
	Limit   int      // stacks that are named before the others stay empty; 0: all

	Names      *symbol.Resolver
	loop       string // the interpreter's code as of the last Start
	listed     string // packages that the recorder found
	Classifier Classifier
	native     map[uint64]nativeCall
	python     map[trace.PyFrame]*Frame
	Stacks     map[Pair]*Stack
	ruleFrames map[*Frame]*rules.Frame // frames in the form that rules read
	requested  bool                    // names of native frames were requested in this query
}

// Pair names a native and a Python stack of the same moment.
type Pair struct{ Native, Python trace.StackID }

// ID packs a pair, so that it can be a grouping's identifier.
func (p Pair) ID() uint64 { return uint64(p.Native)<<32 | uint64(p.Python) }

func PairOf(id uint64) Pair { return Pair{trace.StackID(id >> 32), trace.StackID(id)} }

func NewStacks(tables *trace.Tables, links *LinkedStacks) *Stacks {
	return &Stacks{Tables: tables, links: links, Info: func() trace.Info { return nil }}
}

// Start resets everything if nothing exists yet, or if the interpreter or a library was found after the first stack was
// requested.
func (c *Stacks) Start() {
	info := c.Info()
	if c.Names != nil && c.loop == info["python.eval"] && c.listed == info[LibrariesKey] {
		return
	}
	c.Close()
	c.loop, c.listed = info["python.eval"], info[LibrariesKey]
	c.Names = symbol.New(c.Tables, info, c.Options)
	c.Classifier = NewClassifier(info, c.Own)
	if c.Options.SeesPackages() {
		c.Classifier.packages = &symbol.PackageFolders{}
	}
	c.native = make(map[uint64]nativeCall)
	c.python = make(map[trace.PyFrame]*Frame)
	c.Stacks = make(map[Pair]*Stack)
	c.ruleFrames = make(map[*Frame]*rules.Frame)
}

// RuleFrame returns a frame in the form that rules read; equal frames give the same pointer.
func (c *Stacks) RuleFrame(f *Frame) *rules.Frame {
	known := c.ruleFrames[f]
	if known == nil {
		known = &rules.Frame{File: f.File, Functions: []string{f.Title()}}
		for _, name := range []string{f.Function, f.FullFunction} {
			if name != "" && !slices.Contains(known.Functions, name) {
				known.Functions = append(known.Functions, name)
			}
		}
		if f.Module != "" {
			known.Library = c.Classifier.object(f)
		}
		c.ruleFrames[f] = known
	}
	return known
}

// Close closes the files in which names were looked up. Names that were found stay valid.
func (c *Stacks) Close() {
	if c.Names != nil {
		c.Names.Close()
	}
}

// Of returns the stack of a pair, empty if nothing is known of it.
func (c *Stacks) Of(pair Pair) *Stack {
	c.Start()
	s, known := c.Stacks[pair]
	switch {
	case known:
		c.requested = c.requested || s.native
		return s
	case c.Limit > 0 && len(c.Stacks) >= c.Limit:
		return &Stack{Key: report.NoStack}
	}
	s = c.resolve(pair)
	c.Stacks[pair] = s
	c.requested = c.requested || s.native
	return s
}

// Touch records the use of a result built from the names of a stack earlier: problems with those names belong to the
// current query.
func (c *Stacks) Touch(pair Pair) {
	if s, known := c.Stacks[pair]; known {
		c.requested = c.requested || s.native
	}
}

// BeginQuestion limits Problems and Notes to those of one of several queries and of what was looked up before all of
// them. The caller ends the query.
func (c *Stacks) BeginQuestion() (end func()) {
	before := c.requested
	return func() { c.requested = before }
}

// Forget drops all names. They are resolved again on demand.
func (c *Stacks) Forget() {
	c.Close()
	c.Names, c.native, c.python, c.Stacks, c.ruleFrames = nil, nil, nil, nil, nil
}

func (c *Stacks) resolve(pair Pair) *Stack {
	addresses := c.Tables.Stack(pair.Native)
	native := make([]nativeCall, len(addresses))
	for i, pc := range addresses {
		native[i] = c.nativeCall(pc)
	}
	python := c.links.Split(pair.Python)
	ownFrames, _ := c.Tables.PyStack(python.Backward)
	own := c.pythonFrames(ownFrames)
	s := &Stack{native: len(addresses) > 0,
		All: mergeStacks(native, c.Tables.StackEnd(pair.Native) == trace.StackInterpreter, own)}
	s.own, s.Backward = len(s.All), BackwardOf[python.above != 0]
	if python.forward != 0 {
		s.All = append(append(s.All, c.Classifier.frame(symbol.Frame{Kind: symbol.Python, Function: rules.GradientOf})),
			c.pythonFrames(python.Frames(c.Tables))...)
	}
	s.Shown = foldNoise(s.All)
	s.Site, s.Key = siteOf(s), report.NoStack
	if s.Site != nil {
		s.Key = c.Classifier.Site(s.Site)
		if s.Site.User && !slices.Contains(s.All[:s.own], s.Site) {
			s.Key = s.Backward + s.Key
		}
		if slices.ContainsFunc(s.All, isBeforeStart) {
			s.Key = report.BeforeStart
		}
	}
	return s
}

// isBeforeStart recognizes blocks that existed when recording began in the middle of the run.
func isBeforeStart(f *Frame) bool {
	return f.Function == trace.BeforeFunction && f.File == trace.BeforeFile
}

// BackwardOf is the prefix of sites of a backward pass: of the forward operator itself, and of an operator near it.
var BackwardOf = map[bool]string{false: "backward of ", true: "backward near "}

func (c *Stacks) pythonFrames(list []trace.PyFrame) []*Frame {
	frames := make([]*Frame, len(list))
	for i, f := range list {
		frames[i] = c.pythonFrame(f)
	}
	return frames
}

func (c *Stacks) nativeCall(pc uint64) nativeCall {
	call, known := c.native[pc]
	if !known {
		for _, f := range c.Names.Native(pc) {
			call = append(call, c.Classifier.frame(f))
		}
		c.native[pc] = call
	}
	return call
}

func (c *Stacks) pythonFrame(f trace.PyFrame) *Frame {
	known := c.python[f]
	if known == nil {
		known = c.Classifier.frame(c.Names.Python(f))
		c.python[f] = known
	}
	return known
}

// Notes returns the first few notes about names that were not found.
func (c *Stacks) Notes() []string {
	const shown = 3
	list := c.Problems()
	if more := len(list) - shown; more > 1 {
		list = append(list[:shown:shown], report.Count(uint64(more), "more problem", "more problems")+
			" with the names of code addresses; the JSON report lists them.")
	}
	return list
}

// Problems returns what prevented names from being found.
func (c *Stacks) Problems() []string {
	if c.Names == nil || !c.requested {
		return nil
	}
	return c.Names.Problems()
}

// siteOf returns the innermost frame of the program's own code, else the step of a gradient computation, else the
// innermost frame left after folding.
func siteOf(s *Stack) *Frame {
	for _, f := range s.Shown {
		if f.User {
			return f
		}
	}
	for _, f := range s.Shown {
		if f.Fold == FoldNode || f.Fold == foldEngine {
			return f
		}
	}
	if len(s.Shown) > 0 {
		return s.Shown[0]
	}
	return nil
}
