package export

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"memtrace/analyzer"
	"memtrace/internal/render/layout"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// Pprof writes a profile for pprof, with all values: those of Go's heap profiles under their names, and peak_space. The
// wanted value is pprof's default. Addresses are those of the process.
func Pprof(w io.Writer, set *analyzer.StackSet, o Options) error {
	b := newPprofBuilder(set, &o)
	for i := range set.Rows {
		b.sample(&set.Rows[i])
	}
	if err := b.profile.CheckValid(); err != nil {
		return fmt.Errorf("make the profile: %w", err)
	}
	if err := b.profile.Write(w); err != nil {
		return fmt.Errorf("write the profile: %w", err)
	}
	return nil
}

// pprofTypes are the values of a sample, in the order of Go's heap profiles.
var pprofTypes = []struct {
	name, unit string
	of         func(*analyzer.StackRow) uint64
}{
	{"alloc_objects", "count", func(r *analyzer.StackRow) uint64 { return r.AllocCount }},
	{"alloc_space", "bytes", func(r *analyzer.StackRow) uint64 { return r.AllocBytes }},
	{"inuse_objects", "count", func(r *analyzer.StackRow) uint64 {
		return r.AllocCount - min(r.FreeCount, r.AllocCount)
	}},
	{"inuse_space", "bytes", func(r *analyzer.StackRow) uint64 { return r.LiveBytes }},
	{"peak_space", "bytes", func(r *analyzer.StackRow) uint64 { return r.PeakBytes }},
}

// pprofBuilder fills the tables of a profile, each entry once.
type pprofBuilder struct {
	profile   *profile.Profile
	names     []string // of labels
	noLines   bool
	modules   *moduleIndex
	functions map[pprofFunction]*profile.Function
	locations map[string]*profile.Location // by its frames: address, line, texts
	key       []byte                       // reused
}

type pprofFunction struct{ name, system, file string }

func newPprofBuilder(set *analyzer.StackSet, o *Options) *pprofBuilder {
	p := &profile.Profile{
		DefaultSampleType: values[o.Value].pprof,
		PeriodType:        &profile.ValueType{Type: "space", Unit: "bytes"},
		Period:            1, // every allocation was seen
		Comments:          []string{o.Writer, command(set)},
	}
	if !set.Health.Complete {
		p.Comments = append(p.Comments, layout.Health(set.Health, set.LostRecords))
	}
	if begin := started(set); !begin.IsZero() {
		p.TimeNanos = begin.UnixNano()
	}
	p.DurationNanos = set.Process.DurationNS
	for _, t := range pprofTypes {
		p.SampleType = append(p.SampleType, &profile.ValueType{Type: t.name, Unit: t.unit})
	}
	return &pprofBuilder{
		profile:   p,
		names:     set.Labels,
		noLines:   o.NoLines,
		modules:   newModuleIndex(p, o.Modules, set.Process.Exe),
		functions: make(map[pprofFunction]*profile.Function),
		locations: make(map[string]*profile.Location),
	}
}

func (b *pprofBuilder) sample(row *analyzer.StackRow) {
	s := &profile.Sample{Value: make([]int64, len(pprofTypes))}
	for i, t := range pprofTypes {
		s.Value[i] = int64(min(t.of(row), math.MaxInt64))
	}
	if slices.Max(s.Value) == 0 {
		return
	}
	for frames := row.Frames; len(frames) > 0; {
		n := locationLength(frames)
		s.Location = append(s.Location, b.location(frames[:n]))
		frames = frames[n:]
	}
	s.Label = b.labels(row)
	if len(s.Location) == 0 {
		s.Location = []*profile.Location{b.location([]symbol.Frame{{Kind: symbol.JIT, Function: noStack.function}})}
	}
	b.profile.Sample = append(b.profile.Sample, s)
}

// labels are the labels by which pprof can group and filter (-tagroot, -tagfocus). Unknown values have none.
func (b *pprofBuilder) labels(row *analyzer.StackRow) map[string][]string {
	labels := make(map[string][]string, len(row.Labels))
	for i, key := range row.Labels {
		if !strings.HasPrefix(key, "(") && key != "" { // not "(untagged)", "(no module)"
			labels[b.names[i]] = []string{key}
		}
	}
	return labels
}

// locationLength returns how many of the innermost frames are at one address: inlined functions, and the one into which
// they were inlined.
func locationLength(frames []symbol.Frame) int {
	n := 1
	for n < len(frames) && frames[n-1].Inlined && frames[n].Address == frames[0].Address &&
		frames[n].Module == frames[0].Module {
		n++
	}
	return n
}

func (b *pprofBuilder) location(frames []symbol.Frame) *profile.Location {
	b.key = b.key[:0]
	for i := range frames {
		f := &frames[i]
		b.key = binary.AppendUvarint(b.key, f.Address)
		b.key = binary.AppendUvarint(b.key, uint64(b.line(f)))
		for _, text := range []string{f.Module, f.Function, f.FullFunction, f.File} {
			b.key = binary.AppendUvarint(b.key, uint64(len(text)))
			b.key = append(b.key, text...)
		}
	}
	if known, ok := b.locations[string(b.key)]; ok {
		return known
	}
	l := &profile.Location{ID: uint64(len(b.profile.Location) + 1)}
	l.Mapping, l.Address = b.modules.place(&frames[0])
	for i := range frames {
		l.Line = append(l.Line, profile.Line{Function: b.function(&frames[i]), Line: b.line(&frames[i])})
	}
	b.locations[string(b.key)] = l
	b.profile.Location = append(b.profile.Location, l)
	return l
}

func (b *pprofBuilder) line(f *symbol.Frame) int64 {
	if b.noLines {
		return 0
	}
	return int64(max(f.Line, 0))
}

func (b *pprofBuilder) function(f *symbol.Frame) *profile.Function {
	key := pprofFunction{name: f.Name(), file: f.File}
	if f.FullFunction != key.name {
		key.system = f.FullFunction // never the name itself: pprof would parse it as C++ and drop <module>
	}
	fn, known := b.functions[key]
	if !known {
		fn = &profile.Function{ID: uint64(len(b.profile.Function) + 1), Name: key.name, SystemName: key.system,
			Filename: key.file}
		b.functions[key] = fn
		b.profile.Function = append(b.profile.Function, fn)
	}
	return fn
}

// moduleIndex finds the mappings of object files.
type moduleIndex struct {
	byPath map[string]mappedModule
}

type mappedModule struct {
	mapping *profile.Mapping
	base    uint64
}

// newModuleIndex adds the modules of a run to a profile, the program before the others: pprof takes the first one as
// the profile's program.
func newModuleIndex(p *profile.Profile, modules []trace.Module, exe string) *moduleIndex {
	index := &moduleIndex{byPath: make(map[string]mappedModule)}
	program := slices.IndexFunc(modules, func(m trace.Module) bool { return m.Path == exe })
	switch {
	case program >= 0:
		index.add(p, modules[program])
	case exe != "": // no stack led through it
		index.add(p, trace.Module{Path: exe})
	}
	for _, m := range modules {
		index.add(p, m)
	}
	return index
}

func (x *moduleIndex) add(p *profile.Profile, m trace.Module) {
	if _, known := x.byPath[m.Path]; known || m.Path == "" {
		return // a file that was loaded again is at another address; one is enough to name its addresses
	}
	mapping := &profile.Mapping{ID: uint64(len(p.Mapping) + 1), Start: m.Start, Limit: m.End, File: m.Path,
		BuildID: m.BuildID,
		// the profile has all known names: nothing is left to look up
		HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true}
	p.Mapping = append(p.Mapping, mapping)
	x.byPath[m.Path] = mappedModule{mapping, m.Base}
}

// place returns where a frame's code lay in the process: no mapping and address 0 for Python.
func (x *moduleIndex) place(f *symbol.Frame) (*profile.Mapping, uint64) {
	if f.Module == "" {
		return nil, f.Address
	}
	m, known := x.byPath[f.Module]
	if !known {
		return nil, f.Address
	}
	return m.mapping, m.base + f.Address
}
