package analyzer

import (
	"math/rand/v2"
	"slices"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/device"
	"memtrace/internal/heap"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// Occasions as the test dictionary has them.
const (
	nameContext trace.StringID = 30
	namePeriod  trace.StringID = 31
)

func sampleSource(events []trace.Event) *memorySource {
	src := &memorySource{events: events, info: trace.Info{"nvml": "on"}}
	fillTables(&src.tables)
	src.tables.AddString(nameContext, "context")
	src.tables.AddString(namePeriod, "period")
	return src
}

// script numbers events in order, 1 s apart.
func script(events ...trace.Event) []trace.Event {
	for i := range events {
		events[i].Seq, events[i].Time, events[i].Thread = uint64(i+1), int64(i)*1e9, 1
	}
	return events
}

func contextEvent(handle uint64, device int16) trace.Event {
	return trace.Event{Kind: trace.EventCreate, Level: cuda.LevelDriver, API: apiByName("cuDevicePrimaryCtxRetain"),
		Object: cuda.ObjectContext, Addr: handle, Device: device}
}

func explicitContext(handle uint64, device int16) trace.Event {
	e := contextEvent(handle, device)
	e.API = apiByName("cuCtxCreate_v2")
	return e
}

func apiByName(name string) cuda.API {
	api, ok := cuda.ParseAPI(name)
	if !ok {
		panic(name)
	}
	return api
}

func deviceAlloc(addr, size uint64, device int16) trace.Event {
	return trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelDriver, Mem: cuda.MemoryDevice, Addr: addr, Size: size,
		Device: device, Stack: stackAllocator}
}

func asyncAlloc(addr, size uint64) trace.Event {
	e := deviceAlloc(addr, size, 0)
	e.Mem = cuda.MemoryAsync
	return e
}

func sampleEvent(device int16, used, own, others, kept uint64) trace.Event {
	return trace.Event{Kind: trace.EventSample, Device: device, Size: used, Allocated: own, Count: others,
		Reserved: kept, Name: namePeriod}
}

func deviceReportOf(t *testing.T, src *memorySource, o Options) *report.DeviceReport {
	t.Helper()
	s, err := Summarize(src, o)
	if err != nil {
		t.Fatal(err)
	}
	if s.DeviceLedger == nil {
		t.Fatal("no device ledger")
	}
	return s.DeviceLedger
}

func checkRows(t *testing.T, l report.DeviceLedger, want map[string]int64) {
	t.Helper()
	var sum int64
	got := make(map[string]int64)
	for _, r := range l.Rows {
		sum += r.Bytes
		got[r.Owner] += r.Bytes
	}
	if uint64(sum) != l.Sample.UsedBytes {
		t.Errorf("%s: the rows add up to %d, the device says %d", l.Moment, sum, l.Sample.UsedBytes)
	}
	for owner, bytes := range want {
		if got[owner] != bytes {
			t.Errorf("%s: %s is %d, want %d", l.Moment, owner, got[owner], bytes)
		}
		delete(got, owner)
	}
	for owner, bytes := range got {
		if bytes != 0 {
			t.Errorf("%s: %d bytes of %s", l.Moment, bytes, owner)
		}
	}
}

// Every kind of owner, at two samples, with a remainder that grows.
func TestDeviceLedgerOwners(t *testing.T) {
	src := sampleSource(script(
		contextEvent(0x100, 0),
		deviceAlloc(0x7f0000000000, 10*mib+1, 0),
		sampleEvent(0, 400*mib+512, 310*mib+512, 60*mib, 20*mib), // context 300 MiB, 10 MiB in no process
		asyncAlloc(0x7f1000000000, 3*mib),
		trace.Event{Kind: trace.EventReserve, Level: cuda.LevelDriver, Object: cuda.ObjectPool, Addr: 0x900,
			Size: 32 * mib, Allocated: 3 * mib},
		trace.Event{Kind: trace.EventReserve, Level: cuda.LevelDriver, Object: cuda.ObjectGraphPool, Size: 4 * mib},
		sampleEvent(0, 450*mib+512, 353*mib+512, 60*mib, 20*mib), // 7 MiB more than that
	))
	r := deviceReportOf(t, src, Options{Question: Question{Groupings: []string{"library"}}})
	if len(r.Devices) != 1 || len(r.Devices[0].Ledgers) != 1 {
		t.Fatalf("%+v", r.Devices)
	}
	l := r.Devices[0].Ledgers[0]
	checkRows(t, l, map[string]int64{report.OwnerBlocks: 13*mib + 1, report.OwnerRounding: 511,
		report.OwnerPoolIdle: 29 * mib, report.OwnerGraphPool: 4 * mib, report.OwnerContext: 300 * mib,
		report.OwnerOthers: 60 * mib, report.OwnerKept: 20 * mib, report.OwnerUnlisted: 17 * mib,
		report.OwnerRemainder: 7 * mib})
	// CUDA's size of a device leaves out what the driver keeps, which is in use here: on the first real device the
	// table had that much too little free.
	if l.Moment != report.MomentLast || l.TotalBytes != 8<<30+20*mib {
		t.Errorf("%+v", l)
	}
	first := r.Devices[0].Samples[0]
	if first.RemainderBytes != 10*mib || first.ContextBytes != 300*mib {
		t.Errorf("first sample %+v", first)
	}
}

// The highest sample is not the last one; asked for, any moment leads to the sample nearest to it.
func TestDeviceLedgerMoments(t *testing.T) {
	events := script(
		contextEvent(0x100, 0),
		sampleEvent(0, 300*mib, 300*mib, 0, 0),
		deviceAlloc(0x7f0000000000, 50*mib, 0),
		sampleEvent(0, 350*mib, 350*mib, 0, 0),
		trace.Event{Kind: trace.EventFree, Level: cuda.LevelDriver, Mem: cuda.MemoryDevice, Addr: 0x7f0000000000},
		sampleEvent(0, 300*mib, 300*mib, 0, 0),
	)
	r := deviceReportOf(t, sampleSource(events), Options{Question: Question{Groupings: []string{"api"}}})
	if l := r.Devices[0].Ledgers; len(l) != 2 || l[0].Moment != report.MomentHighest || l[0].Sample.TimeNS != 3e9 ||
		l[1].Moment != report.MomentLast || l[1].Sample.TimeNS != 5e9 {
		t.Fatalf("%+v", l)
	}
	for at, want := range map[string]int64{"peak": 1e9, "exit": 5e9, "1.2s": 1e9, "2.9s": 3e9, "5s": 5e9} {
		moment, err := moment.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		l := deviceReportOf(t, sampleSource(events),
			Options{Question: Question{Groupings: []string{"api"}, At: moment}}).Devices[0].Ledgers
		if at == "peak" { // at 2 s, as near to the sample before as to the one after
			want = l[0].Sample.TimeNS
			if want != 1e9 && want != 3e9 {
				t.Errorf("peak: %d", want)
			}
		}
		if len(l) != 1 || l[0].Moment != at || l[0].Sample.TimeNS != want {
			t.Errorf("%s: %+v, want the sample at %d", at, l, want)
		}
	}
}

// An allocator that caches makes all samples equal: the one at the peak says what filled the device.
func TestHighestOfEqualSamples(t *testing.T) {
	block := func(kind trace.EventKind, addr, size uint64) trace.Event {
		return trace.Event{Kind: kind, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, Addr: addr, Size: size,
			Stack: stackAllocator}
	}
	events := script(
		deviceAlloc(0x7f0000000000, 100*mib, 0),
		block(trace.EventAlloc, 0x7f0000000000, 10*mib),
		sampleEvent(0, 100*mib, 100*mib, 0, 0),
		block(trace.EventAlloc, 0x7f0001000000, 80*mib), // the peak, at 3 s
		sampleEvent(0, 100*mib, 100*mib, 0, 0),
		block(trace.EventFree, 0x7f0001000000, 80*mib),
		sampleEvent(0, 100*mib, 100*mib, 0, 0),
		sampleEvent(0, 100*mib, 100*mib, 0, 0),
	)
	events[3].Time = 39e8 // nearer to the sample behind it
	l := deviceReportOf(t, sampleSource(events), Options{Question: Question{Groupings: []string{"tag"}}}).
		Devices[0].Ledgers
	if l[0].Moment != report.MomentHighest || l[0].Sample.TimeNS != 4e9 {
		t.Fatalf("the highest sample is the one at %d", l[0].Sample.TimeNS)
	}
	checkRows(t, l[0], map[string]int64{report.OwnerBlocks: 90 * mib, report.OwnerSlack: 10 * mib})
}

// Samples that changed under the recorder's hands, or that cannot tell processes apart, stand back.
func TestDeviceLedgerPrefersGoodSamples(t *testing.T) {
	vague := sampleEvent(0, 900*mib, 0, 0, 0)
	vague.Flags = trace.FlagShareUnknown
	unsettled := sampleEvent(0, 950*mib, 950*mib, 0, 0)
	unsettled.Flags = trace.FlagUnsettled
	late := sampleEvent(0, 950*mib, 950*mib, 0, 0)
	late.Flags = trace.FlagLate
	events := script(contextEvent(0x100, 0), sampleEvent(0, 400*mib, 300*mib, 100*mib, 0), vague, unsettled, late)
	l := deviceReportOf(t, sampleSource(events), Options{}).Devices[0].Ledgers
	for _, one := range l {
		if one.Sample.TimeNS != 1e9 {
			t.Errorf("%s is the sample at %d", one.Moment, one.Sample.TimeNS)
		}
	}
	// Where no share is ever known, what is not tracked cannot be divided.
	l = deviceReportOf(t, sampleSource(script(contextEvent(0x100, 0), deviceAlloc(0x7f0000000000, 10*mib, 0), vague)),
		Options{Question: Question{Groupings: []string{"tag"}}}).Devices[0].Ledgers
	checkRows(t, l[len(l)-1], map[string]int64{report.OwnerBlocks: 10 * mib, report.OwnerRemainder: 890 * mib})
}

// A context's cost belongs to it: it goes when the context goes, and a second context has its own.
func TestContextCosts(t *testing.T) {
	destroy := trace.Event{Kind: trace.EventDestroy, Level: cuda.LevelDriver, Object: cuda.ObjectContext, Addr: 0x200}
	reset := trace.Event{Kind: trace.EventDestroy, Level: cuda.LevelDriver, Object: cuda.ObjectContext}
	share := func(own uint64) trace.Event { return sampleEvent(0, own, own, 0, 0) }
	src := sampleSource(script(contextEvent(0x100, 0), share(300*mib), explicitContext(0x200, 0), share(500*mib),
		share(520*mib), destroy, share(320*mib), reset, share(5*mib),
		contextEvent(0x100, 0), share(290*mib)))
	var got [][2]int64
	for _, s := range deviceReportOf(t, src, Options{}).Devices[0].Samples {
		got = append(got, [2]int64{int64(s.ContextBytes) / mib, s.RemainderBytes / mib})
	}
	if want := [][2]int64{{300, 0}, {500, 0}, {500, 20}, {300, 20}, {0, 5}, {290, 0}}; !slices.Equal(got, want) {
		t.Errorf("context and remainder are %v, want %v", got, want)
	}
}

// A device that counts pages does not charge the rest of the first ones to the context.
func TestContextOnPages(t *testing.T) {
	free := trace.Event{Kind: trace.EventFree, Level: cuda.LevelDriver, Mem: cuda.MemoryDevice, Addr: 0x7f0000000000}
	src := sampleSource(script(contextEvent(0x100, 0), deviceAlloc(0x7f0000000000, 512, 0),
		sampleEvent(0, 302*mib, 302*mib, 0, 0), free, sampleEvent(0, 300*mib, 300*mib, 0, 0)))
	d := deviceReportOf(t, src, Options{Question: Question{Groupings: []string{"tag"}}}).Devices[0]
	if first := d.Ledgers[0]; first.PartialPageBytes != 2*mib-512 || first.Sample.RemainderBytes != 2*mib-512 ||
		first.Sample.ContextBytes != 300*mib {
		t.Errorf("%+v", first)
	}
	if last := d.Samples[1]; last.RemainderBytes != 0 {
		t.Errorf("%+v", last)
	}
}

// Memory that the device does not count leaves a negative remainder, and the context none.
func TestNegativeRemainder(t *testing.T) {
	src := sampleSource(script(contextEvent(0x100, 0), deviceAlloc(0x7f0000000000, 100*mib, 0),
		sampleEvent(0, 60*mib, 60*mib, 0, 0)))
	l := deviceReportOf(t, src, Options{Question: Question{Groupings: []string{"tag"}}}).Devices[0].Ledgers[0]
	checkRows(t, l, map[string]int64{report.OwnerBlocks: 100 * mib, report.OwnerRemainder: -40 * mib})
}

func TestNoSamples(t *testing.T) {
	src := sampleSource(script(deviceAlloc(0x7f0000000000, mib, 0)))
	src.info = trace.Info{"nvml": "off: MEMTRACE_NVML=0"}
	if r := deviceReportOf(t, src, Options{}); r.Status != "off" || r.Why != "MEMTRACE_NVML=0" || len(r.Devices) != 0 {
		t.Errorf("%+v", r)
	}
	src = sampleSource(script(deviceAlloc(0x7f0000000000, mib, 0)))
	src.info = nil // a trace of an older recorder
	s, err := Summarize(src, Options{})
	if err != nil || s.DeviceLedger != nil {
		t.Errorf("%v %+v", err, s.DeviceLedger)
	}
}

// TestEarlyAnswer: contexts of the null GPU may occupy nothing, so that a device is empty at first, and the recorder
// notes that this cannot be. What it says later counts; a used device that was never sampled keeps the note.
func TestEarlyAnswer(t *testing.T) {
	const note = "the device says that nothing is in use, though the program uses it"
	for second, want := range map[int16]int{0: 0, 1: 1} {
		src := sampleSource(script(contextEvent(0x100, 0), deviceAlloc(0x7f0000000000, 100*mib, 0),
			deviceAlloc(0x7f1000000000, 100*mib, second), sampleEvent(0, 200*mib, 200*mib, 0, 0)))
		src.info["nvml.device"] = note
		if got := deviceReportOf(t, src, Options{}).Notes; len(got) != want {
			t.Errorf("memory on devices 0 and %d: notes %q", second, got)
		}
	}
}

// There may be any number of samples.
func TestSamplesAreBounded(t *testing.T) {
	events := []trace.Event{contextEvent(0x100, 0)}
	for i := range uint64(10 * device.MaxSamples) {
		e := sampleEvent(0, (300+i)*mib, (300+i)*mib, 0, 0)
		if i%100 == 0 {
			e.Name = nameContext
		}
		events = append(events, e)
	}
	d := deviceReportOf(t, sampleSource(script(events...)), Options{}).Devices[0]
	if len(d.Samples) > device.MaxSamples || len(d.Samples) < device.MaxSamples/4 ||
		d.SampleCount != 10*device.MaxSamples {
		t.Errorf("%d of %d samples", len(d.Samples), d.SampleCount)
	}
	contexts := 0
	for i, s := range d.Samples {
		if i > 0 && s.TimeNS <= d.Samples[i-1].TimeNS {
			t.Fatal("samples are out of order")
		}
		if s.Occasion == "context" {
			contexts++
		}
	}
	if contexts < 50 {
		t.Errorf("%d of 103 samples with a reason are left", contexts)
	}
}

// On random histories, what a ledger says of a sample is what a summary says of a trace that ends there.
func TestDeviceLedgerAgreesWithPrefix(t *testing.T) {
	for seed := range uint64(randomStreams() / 5) {
		rng := rand.New(rand.NewPCG(seed, 0x73616d70))
		events := randomStream(seed, streamShape{events: 150 + rng.IntN(300), wild: seed%2 == 0, noStacks: seed%7 == 0})
		at := rng.IntN(len(events))
		device := int16(rng.IntN(2))
		e := sampleEvent(device, uint64(rng.IntN(1<<34)), uint64(rng.IntN(1<<33)), uint64(rng.IntN(1<<30)),
			uint64(rng.IntN(1<<29)))
		e.Seq, e.Time = events[at].Seq, events[at].Time
		with := append(slices.Clone(events[:at]), e)
		tail := slices.Clone(events[at:])
		for i := range tail {
			tail[i].Seq++
		}
		by := profile.GroupingNames()[rng.IntN(len(profile.GroupingNames()))]
		r := deviceReportOf(t, sampleSource(append(with, tail...)),
			Options{Question: Question{Groupings: []string{by}}})
		l := r.Devices[0].Ledgers[len(r.Devices[0].Ledgers)-1]
		s, err := Summarize(sampleSource(events[:at]), Options{Question: Question{Groupings: []string{by}},
			Devices: []int16{device}})
		if err != nil {
			t.Fatal(err)
		}
		checkPrefix(t, seed, device, l, s, by)
	}
}

func checkPrefix(t *testing.T, seed uint64, device int16, l report.DeviceLedger, s *report.Summary, by string) {
	t.Helper()
	want := make(map[string]int64)
	level := heap.AccountDriver.String()
	for _, r := range l.Rows { // only a framework has these; whether it comes later in the trace decides too
		if r.Owner == report.OwnerSlack || r.Owner == report.OwnerOutside {
			level = heap.AccountFramework.String()
		}
	}
	if !s.Framework.Empty() {
		level = heap.AccountFramework.String()
	}
	if g := s.Group(by, level); g != nil {
		for _, r := range g.Rows {
			if r.LiveBytes > 0 {
				want[r.Key] = int64(r.LiveBytes)
			}
		}
	}
	var sum, tracked int64
	for _, r := range l.Rows {
		sum += r.Bytes
		switch r.Owner {
		case report.OwnerBlocks:
			if want[r.Key] != r.Bytes {
				t.Errorf("seed %d: %s holds %d, want %d", seed, r.Key, r.Bytes, want[r.Key])
			}
			delete(want, r.Key)
			tracked += r.Bytes
		case report.OwnerSlack, report.OwnerOutside, report.OwnerRounding, report.OwnerPoolIdle, report.OwnerGraphPool:
			tracked += r.Bytes
		}
	}
	if len(want) > 0 && level == s.MainLevel() {
		t.Errorf("seed %d: the ledger lacks %v", seed, want)
	}
	if uint64(sum) != l.Sample.UsedBytes || uint64(tracked) != l.Sample.TrackedBytes {
		t.Errorf("seed %d: rows add up to %d and %d, want %d and %d", seed, sum, tracked, l.Sample.UsedBytes,
			l.Sample.TrackedBytes)
	}
	for _, d := range s.Devices {
		if v := d.Sizes.AtEnd; d.Index == device &&
			v.RoundedBytes+v.PoolIdleBytes+v.GraphPoolBytes != l.Sample.TrackedBytes {
			t.Errorf("seed %d: %d tracked, the sizes are %+v", seed, l.Sample.TrackedBytes, v)
		}
	}
}
