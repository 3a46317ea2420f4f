package analyzer

import (
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// owned makes the latest allocation belong to an object.
func (s *story) owned(handle uint64) *story {
	return s.change(func(e *trace.Event) { e.Handle = handle })
}

func (s *story) create(kind cuda.ObjectKind, handle uint64, call string) *story {
	return s.add(trace.Event{Kind: trace.EventCreate, Level: cuda.LevelDriver, Object: kind, Addr: handle,
		API: api(call)})
}

// notice tells of a primary context.
func (s *story) notice(handle uint64) *story {
	return s.create(cuda.ObjectContext, handle, "cuMemAlloc_v2").change(func(e *trace.Event) {
		e.Flags = trace.FlagNoticed
	})
}

func (s *story) destroy(kind cuda.ObjectKind, handle uint64) *story {
	return s.add(trace.Event{Kind: trace.EventDestroy, Level: cuda.LevelDriver, Object: kind, Addr: handle})
}

func (s *story) retain(handle uint64) *story {
	return s.alloc(cuda.MemoryVMM, handle, 0).change(func(e *trace.Event) { e.Flags = trace.FlagReference })
}

func (s *story) reserve(kind cuda.ObjectKind, pool, size uint64) *story {
	return s.add(trace.Event{Kind: trace.EventReserve, Level: cuda.LevelDriver, Object: kind, Addr: pool, Size: size})
}

// TestOwnershipRules holds one short history for every rule about what ends with what. live is what is left in each
// account.
func TestOwnershipRules(t *testing.T) {
	const ctx, other, graph, module = 0xc0, 0xc1, 0xc0, 0xc0 // handles of different kinds may be equal
	d := cuda.MemoryDevice
	everyKind := func() *story {
		s := (&story{}).create(cuda.ObjectContext, ctx, "cuCtxCreate_v2")
		for i, kind := range []cuda.MemoryKind{d, cuda.MemoryManaged, cuda.MemoryHost, cuda.MemoryRegistered,
			cuda.MemoryArray, cuda.MemoryForeign, cuda.MemoryAsync,
			cuda.MemoryVMM, cuda.MemoryMulticast, cuda.MemoryAddress, cuda.MemoryGraph, cuda.MemoryUnknown} {
			s.alloc(kind, uint64(i+1)<<12, 1<<i).owned(ctx)
		}
		return s
	}
	tests := []struct {
		name   string
		story  *story
		live   map[heap.Account]uint64
		health heap.HeapHealth
	}{
		{"a context takes along what is its own", everyKind().destroy(cuda.ObjectContext, ctx),
			map[heap.Account]uint64{heap.AccountDriver: 64 + 128, heap.AccountMulticast: 256, heap.AccountAddress: 512,
				heap.AccountGraph: 1024, heap.AccountOther: 2048}, heap.HeapHealth{ImplicitFrees: 6}},
		{"a refused destruction", (&story{}).alloc(d, 0x1000, 10).owned(ctx).destroy(cuda.ObjectContext,
			ctx).change(func(e *trace.Event) {
			e.Status = 1
		}),
			map[heap.Account]uint64{heap.AccountDriver: 10}, heap.HeapHealth{}},
		{"one reference less", (&story{}).alloc(d, 0x1000, 10).owned(ctx).destroy(cuda.ObjectContext, ctx).
			change(func(e *trace.Event) { e.Flags = trace.FlagReference }),
			map[heap.Account]uint64{heap.AccountDriver: 10}, heap.HeapHealth{}},
		{"another context", (&story{}).alloc(d, 0x1000, 10).owned(ctx).alloc(d, 0x2000, 5).owned(other).destroy(
			cuda.ObjectContext, ctx),
			map[heap.Account]uint64{heap.AccountDriver: 5}, heap.HeapHealth{ImplicitFrees: 1}},
		{"a context whose handle is that of a graph", (&story{}).alloc(cuda.MemoryGraph, 0x1000,
			10).owned(graph).alloc(d, 0x2000, 5).owned(ctx).
			destroy(cuda.ObjectGraph, graph), map[heap.Account]uint64{heap.AccountDriver: 5},
			heap.HeapHealth{ImplicitFrees: 1}},
		{"reset of a device", (&story{}).notice(ctx).create(cuda.ObjectContext, other, "cuCtxCreate_v2").alloc(d,
			0x1000, 10).owned(ctx).alloc(d, 0x2000, 5).
			owned(other).destroy(cuda.ObjectContext, 0), map[heap.Account]uint64{heap.AccountDriver: 5},
			heap.HeapHealth{ImplicitFrees: 1}},
		{"reset of another device", (&story{}).notice(ctx).alloc(d, 0x1000, 10).owned(ctx).destroy(cuda.ObjectContext,
			0).
			change(func(e *trace.Event) { e.Device = 1 }), map[heap.Account]uint64{heap.AccountDriver: 10},
			heap.HeapHealth{}},
		{"two resets, the handle noticed once", (&story{}).notice(ctx).destroy(cuda.ObjectContext, 0).alloc(d, 0x1000,
			10).owned(ctx).
			destroy(cuda.ObjectContext, 0), nil, heap.HeapHealth{ImplicitFrees: 1}},
		{"what was freed does not end twice", (&story{}).alloc(d, 0x1000, 10).owned(ctx).free(d, 0x1000).alloc(d,
			0x1000, 4).owned(other).
			destroy(cuda.ObjectContext, ctx), map[heap.Account]uint64{heap.AccountDriver: 4}, heap.HeapHealth{}},
		{"a reused handle", (&story{}).alloc(d, 0x1000, 10).owned(ctx).destroy(cuda.ObjectContext, ctx).alloc(d, 0x1000,
			4).owned(ctx).late(2),
			map[heap.Account]uint64{heap.AccountDriver: 4}, heap.HeapHealth{Displaced: 1}},
		{"late free after the context ended", (&story{}).alloc(d, 0x1000, 10).owned(ctx).free(d,
			0x1000).destroy(cuda.ObjectContext, ctx).late(2), nil,
			heap.HeapHealth{ImplicitFrees: 1, LateFrees: 1}},
		{"late alloc after the context ended", (&story{}).alloc(d, 0x1000, 10).owned(ctx).destroy(cuda.ObjectContext,
			ctx).late(1), nil,
			heap.HeapHealth{LateAllocs: 1}},

		{"module unloaded", (&story{}).alloc(cuda.MemoryModule, 0x1000, 10).owned(module).alloc(cuda.MemoryModule,
			0x1000, 10).owned(module).
			destroy(cuda.ObjectModule, module), nil, heap.HeapHealth{ImplicitFrees: 1}},
		{"library unloaded", (&story{}).alloc(cuda.MemoryModule, 0x1000, 10).owned(module).destroy(cuda.ObjectLibrary,
			module), nil, heap.HeapHealth{ImplicitFrees: 1}},
		{"module variables end with the last context", (&story{}).notice(ctx).create(cuda.ObjectContext, other,
			"cuCtxCreate_v2").
			alloc(cuda.MemoryModule, 0x1000, 10).owned(module).destroy(cuda.ObjectContext,
			other).destroy(cuda.ObjectContext, 0), nil, heap.HeapHealth{ImplicitFrees: 1}},
		{"module variables outlive a context that is not the last", (&story{}).notice(ctx).create(cuda.ObjectContext,
			other, "cuCtxCreate_v2").
			alloc(cuda.MemoryModule, 0x1000, 10).owned(module).destroy(cuda.ObjectContext, other),
			map[heap.Account]uint64{heap.AccountDriver: 10}, heap.HeapHealth{}},

		{"node freed as other memory", (&story{}).alloc(cuda.MemoryGraph, 0x1000,
			10).owned(graph).free(cuda.MemoryAsync, 0x1000), nil, heap.HeapHealth{}},
		{"node freed once per launch", (&story{}).alloc(cuda.MemoryGraph, 0x1000, 10).owned(graph).free(d,
			0x1000).free(d, 0x1000).
			free(cuda.MemoryGraph, 0x1000), nil, heap.HeapHealth{}},
		{"free of a node that comes late", (&story{}).alloc(cuda.MemoryGraph, 0x1000, 10).owned(graph).free(d,
			0x1000).free(d, 0x1000).late(1), nil,
			heap.HeapHealth{LateAllocs: 1}},
		{"a node hides no device memory", (&story{}).alloc(cuda.MemoryGraph, 0x1000, 10).alloc(d, 0x1000, 7).free(d,
			0x1000),
			map[heap.Account]uint64{heap.AccountGraph: 10}, heap.HeapHealth{}},
		{"reserved addresses hide nothing", (&story{}).alloc(cuda.MemoryAddress, 0x1000, 100).alloc(d, 0x1000,
			7).free(cuda.MemoryAddress, 0x1000),
			map[heap.Account]uint64{heap.AccountDriver: 7}, heap.HeapHealth{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { checkLive(t, test.story, test.live, test.health) })
	}
}

// TestReferenceRules holds one short history for every rule about memory that is referred to more than once, or known
// before its size is.
func TestReferenceRules(t *testing.T) {
	h, f, im := cuda.MemoryVMM, cuda.MemoryForeign, cuda.MemoryImported
	tests := []struct {
		name   string
		story  *story
		live   map[heap.Account]uint64
		health heap.HeapHealth
	}{
		{"retained, released once", (&story{}).alloc(h, 7, 10).retain(7).free(h, 7),
			map[heap.Account]uint64{heap.AccountDriver: 10}, heap.HeapHealth{}},
		{"retained, released twice", (&story{}).alloc(h, 7, 10).retain(7).free(h, 7).free(h, 7), nil,
			heap.HeapHealth{}},
		{"released once too often", (&story{}).alloc(h, 7, 10).free(h, 7).free(h, 7), nil,
			heap.HeapHealth{UnmatchedFrees: 1}},
		{"retained while only mapped", (&story{}).alloc(h, 7, 10).mapAt(0x1000, 10, 7).free(h,
			7).retain(7).unmap(0x1000, 10),
			map[heap.Account]uint64{heap.AccountDriver: 10}, heap.HeapHealth{}},
		{"the same, released again", (&story{}).alloc(h, 7, 10).mapAt(0x1000, 10, 7).free(h, 7).retain(7).unmap(0x1000,
			10).free(h, 7), nil, heap.HeapHealth{}},
		{"the same, unmapped last", (&story{}).alloc(h, 7, 10).mapAt(0x1000, 10, 7).free(h, 7).retain(7).free(h,
			7).unmap(0x1000, 10), nil, heap.HeapHealth{}},
		{"retained but never seen", (&story{}).retain(7), nil, heap.HeapHealth{UnmatchedReferences: 1}},
		{"asked in vain", (&story{}).retain(7).change(func(e *trace.Event) { e.Status = 1 }), nil, heap.HeapHealth{}},
		{"gone with its last mapping, then retained", (&story{}).alloc(h, 7, 10).mapAt(0x1000, 10, 7).free(h,
			7).unmap(0x1000, 10).retain(7), nil,
			heap.HeapHealth{UnmatchedReferences: 1}},

		{"opened twice, closed once", (&story{}).alloc(f, 0x1000, 10).alloc(f, 0x1000, 10).free(f, 0x1000),
			map[heap.Account]uint64{heap.AccountForeign: 10}, heap.HeapHealth{}},
		{"opened twice, closed twice", (&story{}).alloc(f, 0x1000, 10).alloc(f, 0x1000, 10).free(f, 0x1000).free(f,
			0x1000), nil, heap.HeapHealth{}},
		{"opened twice, context destroyed", (&story{}).alloc(f, 0x1000, 10).owned(1).alloc(f, 0x1000,
			10).owned(1).destroy(cuda.ObjectContext, 1), nil,
			heap.HeapHealth{ImplicitFrees: 1}},
		{"other memory at the address", (&story{}).alloc(f, 0x1000, 10).alloc(f, 0x1000, 11),
			map[heap.Account]uint64{heap.AccountForeign: 11}, heap.HeapHealth{Displaced: 1}},

		{"imported, not mapped", (&story{}).alloc(im, 7, 0), nil, heap.HeapHealth{}},
		{"imported and mapped twice", (&story{}).alloc(im, 7, 0).mapAt(0x1000, 10, 7).mapAt(0x2000, 10, 7),
			map[heap.Account]uint64{heap.AccountForeign: 10}, heap.HeapHealth{}},
		{"imported, released, unmapped", (&story{}).alloc(im, 7, 0).mapAt(0x1000, 10, 7).free(h, 7).unmap(0x1000, 10),
			nil, heap.HeapHealth{}},
		{"imported, mapped to a tile first", (&story{}).alloc(im, 7, 0).mapAt(1<<63|5, 0, 7).mapAt(0x1000, 10, 7),
			map[heap.Account]uint64{heap.AccountForeign: 10}, heap.HeapHealth{}},
		{"tiles mapped over and unmapped twice", (&story{}).alloc(h, 7, 10).mapAt(1<<63|5, 0, 7).mapAt(1<<63|5, 0,
			7).free(h, 7).unmap(1<<63|5, 0).unmap(1<<63|5, 0),
			nil, heap.HeapHealth{}},
		{"imported, released, never mapped", (&story{}).alloc(im, 7, 0).free(h, 7).alloc(h, 7, 3),
			map[heap.Account]uint64{heap.AccountDriver: 3}, heap.HeapHealth{}},
		{"multicast binding under a key", (&story{}).alloc(cuda.MemoryMulticast, 8, 20).alloc(h, 7, 10).mapAt(1<<63|5,
			10, 7).free(h, 7),
			map[heap.Account]uint64{heap.AccountMulticast: 20, heap.AccountDriver: 10}, heap.HeapHealth{}},
		{"multicast binding undone", (&story{}).alloc(cuda.MemoryMulticast, 8, 20).alloc(h, 7, 10).mapAt(1<<63|5, 10,
			7).free(h, 7).unmap(1<<63|5, 10).free(h, 8),
			nil, heap.HeapHealth{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { checkLive(t, test.story, test.live, test.health) })
	}
}

func checkLive(t *testing.T, s *story, live map[heap.Account]uint64, health heap.HeapHealth) {
	t.Helper()
	c := newReplayer(&trace.Tables{}, nil, nil, &Options{}, nil)
	for i := range s.events {
		c.event(&s.events[i])
	}
	for a := heap.AccountDriver; a < heap.AccountCount; a++ {
		got := c.accounts.totals[a].Current
		if d := c.accounts.details[a]; d != nil {
			got = d.Total.Current
		}
		if got != live[a] {
			t.Errorf("%s: %d live, want %d", a, got, live[a])
		}
	}
	if got := c.heap.Health(); got != health {
		t.Errorf("health %+v, want %+v", got, health)
	}
}

// TestImportedMemoryPeaksWhenMapped: memory whose size comes with its mapping is live from then on, and is counted
// once.
func TestImportedMemoryPeaksWhenMapped(t *testing.T) {
	s := (&story{}).alloc(cuda.MemoryImported, 7, 0).alloc(cuda.MemoryImported, 8, 0).mapAt(0x1000, 10, 7).summary(t,
		Options{})
	if l := s.Other["foreign"]; l.PeakBytes != 10 || l.PeakTimeNS != 3000 || l.AllocCount != 1 {
		t.Errorf("foreign %+v", l)
	}
}

// TestObjectsAreCounted follows objects of several kinds, one with a handle that is used again while the end of the
// first is late.
func TestObjectsAreCounted(t *testing.T) {
	g := cuda.ObjectGraph
	s := (&story{}).notice(1).notice(1).create(cuda.ObjectContext, 2, "cuCtxCreate_v2").create(g, 5,
		"cuMemCreate").destroy(g, 5).create(g, 5, "cuMemCreate").
		late(5).destroy(cuda.ObjectContext, 2).create(cuda.ObjectPool, 3,
		"cuMemCreate").change(func(e *trace.Event) { e.Status = 2 }).
		add(trace.Event{Kind: trace.EventLaunch, Object: cuda.ObjectExec, Addr: 9}).
		add(trace.Event{Kind: trace.EventLaunch, Object: cuda.ObjectExec, Addr: 9, Status: 1}).summary(t, Options{})
	want := map[string]report.ObjectCount{"context": {CreatedCount: 2, DestroyedCount: 1, LiveCount: 1},
		"graph": {CreatedCount: 2, DestroyedCount: 1, LiveCount: 1},
		"pool":  {FailedCount: 1}}
	if got := asJSON(t, s.Objects); got != asJSON(t, want) {
		t.Errorf("objects %s", got)
	}
	if s.Launches != 1 {
		t.Errorf("%d launches", s.Launches)
	}
}

// TestModulesEndWithTheLastContext: nobody unloads the modules of a context that is destroyed.
func TestModulesEndWithTheLastContext(t *testing.T) {
	s := (&story{}).notice(1).create(cuda.ObjectModule, 7, "cuMemCreate").create(cuda.ObjectLibrary, 8,
		"cuMemCreate").destroy(cuda.ObjectContext, 0).
		summary(t, Options{})
	if m, l := s.Objects["module"], s.Objects["library"]; m.LiveCount != 0 || m.DestroyedCount != 1 ||
		l.LiveCount != 1 || l.DestroyedCount != 0 {
		t.Errorf("modules %+v, libraries %+v", m, l)
	}
}

// TestImplicitFreesAreNamed: by account, those that the filters leave out too being left out.
func TestImplicitFreesAreNamed(t *testing.T) {
	s := (&story{}).alloc(cuda.MemoryDevice, 0x1000, 100).owned(1).alloc(cuda.MemoryHost, 0x1000,
		30).owned(1).alloc(cuda.MemoryHost, 0x2000, 3).owned(1).
		destroy(cuda.ObjectContext, 1)
	sum := s.summary(t, Options{})
	if sum.Implicit["driver"] != (report.ImplicitFrees{Count: 1, Bytes: 100}) ||
		sum.Implicit["host"] != (report.ImplicitFrees{Count: 2, Bytes: 33}) || len(sum.Implicit) != 2 ||
		sum.Health.ImplicitFrees != 3 {
		t.Errorf("implicit frees %+v, %d in all", sum.Implicit, sum.Health.ImplicitFrees)
	}
	if !sum.Health.Complete || sum.Driver.FreeCount != 1 {
		t.Errorf("health %+v, driver %+v", sum.Health, sum.Driver)
	}
	if sum = s.summary(t, Options{Tag: "model"}); len(sum.Implicit) != 0 {
		t.Errorf("filtered: %+v", sum.Implicit)
	}
}

// TestDriverSteadyStateAllocatesNothing: owners, references, mappings and pools cost no memory either once their tables
// have grown.
func TestDriverSteadyStateAllocatesNothing(t *testing.T) {
	s := (&story{}).notice(1)
	for i := range uint64(20) {
		s.alloc(cuda.MemoryDevice, 0x1000*(i+1), 100).owned(1)
	}
	s.alloc(cuda.MemoryForeign, 0x80000, 10).owned(1).alloc(cuda.MemoryForeign, 0x80000,
		10).owned(1).free(cuda.MemoryForeign, 0x80000).free(cuda.MemoryForeign, 0x80000)
	s.alloc(cuda.MemoryVMM, 7, 2*mib).mapAt(0x90000, 2*mib, 7).free(cuda.MemoryVMM, 7).retain(7).retain(7).free(
		cuda.MemoryVMM, 7).free(cuda.MemoryVMM, 7).
		unmap(0x90000, 2*mib)
	s.create(cuda.ObjectGraph, 5, "cuMemCreate").alloc(cuda.MemoryGraph, 0xa0000, 10).owned(5).free(cuda.MemoryAsync,
		0xa0000).destroy(cuda.ObjectGraph, 5)
	s.reserve(cuda.ObjectPool, 0, 100).reserve(cuda.ObjectGraphPool, 0, 100)
	for i := range uint64(20) {
		s.free(cuda.MemoryDevice, 0x1000*(i+1))
	}
	c := newReplayer(&trace.Tables{}, nil, nil, &Options{}, nil)
	var seq uint64
	replayAll := func() {
		for i := range s.events {
			seq++
			s.events[i].Seq = seq
			c.event(&s.events[i])
		}
	}
	for range 10 {
		replayAll()
	}
	if n := testing.AllocsPerRun(50, replayAll); n > 1 {
		t.Errorf("%v allocations in %d events", n, len(s.events))
	}
	if h := c.heap.Health(); h != (heap.HeapHealth{}) {
		t.Errorf("health %+v", h)
	}
}
