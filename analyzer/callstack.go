package analyzer

import (
	"regexp"
	"slices"

	"memtrace/analyzer/rules"
	"memtrace/analyzer/symbol"
	"memtrace/trace"
)

// frame is a function of a call stack and what readers are told about it.
type frame struct {
	symbol.Frame
	user  bool   // the program's own code
	fold  fold   // how much it says to those who did not write the libraries
	short string // what it is called in folded stacks; "" as everywhere
}

// matches reports whether a filter means the frame: by its function, however it is written, or by its file.
func (f *frame) matches(re *regexp.Regexp) bool {
	return re.MatchString(f.title()) || re.MatchString(f.Function) || re.MatchString(f.FullFunction) || f.File != "" && re.MatchString(f.File)
}

// callStack is the whole stack of an event: native and Python frames in one, innermost first.
type callStack struct {
	all   []*frame
	shown []*frame // without what library noise is folded away; never empty unless all is
	site  *frame   // where the program asked for the memory; nil without a stack
	key   string   // of the site
	own   int      // how many of all are the event's own; behind them stands the forward pass of a gradient

	backward string // what the names of places in that forward pass begin with
}

// callStacks names and merges the stacks of a trace. Every address, Python frame and pair of stacks is resolved once.
type callStacks struct {
	tables  *trace.Tables
	links   *linkedStacks
	info    func() trace.Info
	options symbol.Options
	own     []string // patterns of what is the program's own
	limit   int      // stacks that are named before the others stay empty; 0: all

	names  *symbol.Resolver
	loop   string // the interpreter's code as names knows it
	listed string // packages that the recorder found
	judge  judge
	native map[uint64]nativeCall
	python map[trace.PyFrame]*frame
	stacks map[stackPair]*callStack
	asked  map[*frame]*rules.Frame // what rules see of a frame
}

// stackPair names a native and a Python stack of the same moment.
type stackPair struct{ native, python trace.StackID }

// id packs a pair, so that it can be a grouping's identifier.
func (p stackPair) id() uint64 { return uint64(p.native)<<32 | uint64(p.python) }

func pairOf(id uint64) stackPair { return stackPair{trace.StackID(id >> 32), trace.StackID(id)} }

func newCallStacks(tables *trace.Tables, links *linkedStacks) *callStacks {
	return &callStacks{tables: tables, links: links, info: func() trace.Info { return nil }}
}

// start makes everything anew if there is nothing yet, or if the interpreter or a library was found after the first stack was asked for.
func (c *callStacks) start() {
	info := c.info()
	if c.names != nil && c.loop == info["python.eval"] && c.listed == info[LibrariesKey] {
		return
	}
	c.close()
	c.loop, c.listed = info["python.eval"], info[LibrariesKey]
	c.names = symbol.New(c.tables, info, c.options)
	c.judge = newJudge(info, c.own)
	if c.options.SeesPackages() {
		c.judge.packages = &symbol.PackageFolders{}
	}
	c.native = make(map[uint64]nativeCall)
	c.python = make(map[trace.PyFrame]*frame)
	c.stacks = make(map[stackPair]*callStack)
	c.asked = make(map[*frame]*rules.Frame)
}

// ruleFrame is a frame as rules look at it, the same one for the same frame.
func (c *callStacks) ruleFrame(f *frame) *rules.Frame {
	known := c.asked[f]
	if known == nil {
		known = &rules.Frame{File: f.File, Functions: []string{f.title()}}
		for _, name := range []string{f.Function, f.FullFunction} {
			if name != "" && !slices.Contains(known.Functions, name) {
				known.Functions = append(known.Functions, name)
			}
		}
		if f.Module != "" {
			known.Library = c.judge.object(f)
		}
		c.asked[f] = known
	}
	return known
}

// close gives back the files that names were looked for in. What was found stays.
func (c *callStacks) close() {
	if c.names != nil {
		c.names.Close()
	}
}

// of returns the stack of a pair, empty if nothing is known of it.
func (c *callStacks) of(pair stackPair) *callStack {
	c.start()
	s, known := c.stacks[pair]
	switch {
	case known:
		return s
	case c.limit > 0 && len(c.stacks) >= c.limit:
		return &callStack{key: NoStack}
	}
	s = c.resolve(pair)
	c.stacks[pair] = s
	return s
}

// forget drops all names. They are made anew when they are asked for.
func (c *callStacks) forget() {
	c.close()
	c.names, c.native, c.python, c.stacks, c.asked = nil, nil, nil, nil, nil
}

func (c *callStacks) resolve(pair stackPair) *callStack {
	addresses := c.tables.Stack(pair.native)
	native := make([]nativeCall, len(addresses))
	for i, pc := range addresses {
		native[i] = c.nativeCall(pc)
	}
	python := c.links.split(pair.python)
	ownFrames, _ := c.tables.PyStack(python.backward)
	own := c.pythonFrames(ownFrames)
	s := &callStack{all: mergeStacks(native, c.tables.StackEnd(pair.native) == trace.StackInterpreter, own)}
	s.own, s.backward = len(s.all), backwardOf[python.above != 0]
	if python.forward != 0 {
		s.all = append(append(s.all, c.judge.frame(symbol.Frame{Kind: symbol.Python, Function: rules.GradientOf})), c.pythonFrames(python.frames(c.tables))...)
	}
	s.shown = foldNoise(s.all)
	s.site, s.key = siteOf(s), NoStack
	if s.site != nil {
		s.key = c.judge.site(s.site)
		if s.site.user && !slices.Contains(s.all[:s.own], s.site) {
			s.key = s.backward + s.key
		}
	}
	return s
}

// backwardOf is what sites of a backward pass begin with: of the forward operator itself, and of what is near it.
var backwardOf = map[bool]string{false: "backward of ", true: "backward near "}

func (c *callStacks) pythonFrames(list []trace.PyFrame) []*frame {
	frames := make([]*frame, len(list))
	for i, f := range list {
		frames[i] = c.pythonFrame(f)
	}
	return frames
}

func (c *callStacks) nativeCall(pc uint64) nativeCall {
	call, known := c.native[pc]
	if !known {
		for _, f := range c.names.Native(pc) {
			call = append(call, c.judge.frame(f))
		}
		c.native[pc] = call
	}
	return call
}

func (c *callStacks) pythonFrame(f trace.PyFrame) *frame {
	known := c.python[f]
	if known == nil {
		known = c.judge.frame(c.names.Python(f))
		c.python[f] = known
	}
	return known
}

// notes are what readers must know about names that were not found, the first few.
func (c *callStacks) notes() []string {
	const shown = 3
	list := c.problems()
	if more := len(list) - shown; more > 1 {
		list = append(list[:shown:shown], some(uint64(more), "more problem", "more problems")+" with the names of code addresses; the JSON report lists them.")
	}
	return list
}

// problems says what kept names from being found.
func (c *callStacks) problems() []string {
	if c.names == nil {
		return nil
	}
	return c.names.Problems()
}

// siteOf returns the innermost frame of the program's own code, else the step of a gradient computation, else the innermost frame that is left after folding.
func siteOf(s *callStack) *frame {
	for _, f := range s.shown {
		if f.user {
			return f
		}
	}
	for _, f := range s.shown {
		if f.fold == foldNode || f.fold == foldEngine {
			return f
		}
	}
	if len(s.shown) > 0 {
		return s.shown[0]
	}
	return nil
}
