package symbol

import (
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"memtrace/internal/safefile"
	"memtrace/trace"
)

// Resolver names the frames of one trace. It is for one goroutine at a time. Frames that it returns belong to it and
// must not be changed.
type Resolver struct {
	tables  *trace.Tables
	info    trace.Info
	options Options
	loops   []span // code of the Python interpreter's loop, in the process

	native   map[uint64][]Frame
	python   map[codePlace]Frame
	inductor map[string]kernels // by file
	objects  map[moduleKey]*object
	warmed   bool // many addresses were looked up at once
	jit      *perfMap
	jitRead  bool

	mu       sync.Mutex // objects of several goroutines have problems
	problems map[problem]struct{}
}

// moduleKey identifies an object file. One file that was loaded twice is one object.
type moduleKey struct {
	path, buildID string
	size          uint64
	modTime       int64
}

func keyOf(m trace.Module) moduleKey { return moduleKey{m.Path, m.BuildID, m.Size, m.ModTime} }

// New returns a resolver for the frames of a trace. The tables may still grow; an address is looked up on first use,
// when its module must be in the tables.
func New(tables *trace.Tables, info trace.Info, o Options) *Resolver {
	return &Resolver{
		tables:   tables,
		info:     info,
		options:  o,
		loops:    parseSpans(info["python.eval"]),
		native:   make(map[uint64][]Frame),
		python:   make(map[codePlace]Frame),
		objects:  make(map[moduleKey]*object),
		problems: make(map[problem]struct{}),
	}
}

// Native returns the functions at a return address of a native stack, innermost inlined one first, at least one.
func (r *Resolver) Native(pc uint64) []Frame {
	frames, known := r.native[pc]
	if !known {
		if !r.warmed && !r.options.NoFiles {
			r.Warm(append(r.tables.CodeAddresses(), pc)) // callers that need one address need most of them
		} else {
			r.lookUp([]uint64{pc})
		}
		frames = r.native[pc]
	}
	return frames
}

// Warm looks up many addresses at once, several object files at a time, and saves the results in the cache, if there is
// one. Native returns the same with and without it.
func (r *Resolver) Warm(pcs []uint64) {
	r.warmed = true
	r.lookUp(pcs)
	for _, ob := range r.objects {
		ob.save()
	}
	if r.options.Cache != "" {
		safefile.Trim(r.options.Cache, maxCacheFolder)
	}
}

// Close saves the results to the cache and closes the files. Results stay valid; later requests are looked up again.
func (r *Resolver) Close() {
	for _, ob := range r.objects {
		ob.save()
		ob.close()
	}
}

// place is the location of one address to be looked up.
type place struct {
	pc      uint64
	address uint64 // inside the object
	module  trace.Module
}

func (r *Resolver) lookUp(pcs []uint64) {
	work := make(map[*object][]place)
	for _, pc := range pcs {
		if _, known := r.native[pc]; known {
			continue
		}
		at := max(pc, 1) - 1
		module, ok := r.tables.ModuleAt(at)
		if !ok {
			r.native[pc] = r.outside(place{pc: pc, address: at})
			continue
		}
		p := place{pc, at - module.Base, module}
		if frames := r.embedded(p); frames != nil {
			r.keep(p, frames)
			continue
		}
		ob := r.object(module)
		work[ob] = append(work[ob], p)
		r.native[pc] = nil // requested
	}
	found := make(map[*object][][]Frame, len(work))
	if len(work) == 1 {
		for ob, places := range work {
			found[ob] = ob.all(places)
		}
	} else {
		found = lookUpConcurrently(work)
	}
	for ob, places := range work {
		for i, p := range places {
			r.keep(p, found[ob][i])
		}
	}
}

// lookUpConcurrently looks up each object in a goroutine of its own; as many run as there are processors.
func lookUpConcurrently(work map[*object][]place) map[*object][][]Frame {
	var wait sync.WaitGroup
	var mu sync.Mutex
	found := make(map[*object][][]Frame, len(work))
	running := make(chan struct{}, runtime.GOMAXPROCS(0))
	for ob, places := range work {
		running <- struct{}{}
		wait.Go(func() {
			frames := ob.all(places)
			mu.Lock()
			found[ob] = frames
			mu.Unlock()
			<-running
		})
	}
	wait.Wait()
	return found
}

// keep notes what was found for an address.
func (r *Resolver) keep(p place, frames []Frame) {
	if containsAddress(r.loops, max(p.pc, 1)-1) {
		for i := range frames {
			frames[i].Kind = Interpreter
		}
	}
	r.native[p.pc] = frames
}

// object returns the object of a module. Its files are opened when it is first used.
func (r *Resolver) object(m trace.Module) *object {
	key := keyOf(m)
	ob, known := r.objects[key]
	if !known {
		file := m.Path
		// the program opened it by a path from there
		if cwd := r.info["process.cwd"]; cwd != "" && !filepath.IsAbs(file) {
			file = filepath.Join(cwd, file)
		}
		ob = &object{module: m, file: file, options: &r.options, problem: r.addProblem}
		r.objects[key] = ob
	}
	return ob
}

// outside names code that no module has.
func (r *Resolver) outside(p place) []Frame {
	if frames := r.embedded(p); frames != nil {
		return frames
	}
	if !r.jitRead {
		r.jitRead = true
		var err error
		if r.jit, err = openPerfMap(&r.options, r.info); err != nil {
			r.addProblem(problem{kind: unusable, path: perfMapPath(&r.options, r.info), detail: err.Error()})
		}
	}
	return []Frame{r.jit.frame(p.address)}
}

func (r *Resolver) addProblem(p problem) {
	r.mu.Lock()
	r.problems[p] = struct{}{}
	r.mu.Unlock()
}

// Problems returns what prevented names from being found so far, with remedies, each once, sorted.
func (r *Resolver) Problems() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	texts := problemTexts(r.problems)
	slices.Sort(texts)
	return texts
}
