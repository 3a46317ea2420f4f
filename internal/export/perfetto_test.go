package export

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/guest"
)

// pfMessage are the fields of a message: numbers and bytes.
type pfMessage map[protowire.Number][]pfField

type pfField struct {
	number uint64
	bytes  []byte
}

func readMessage(t *testing.T, data []byte) pfMessage {
	t.Helper()
	m := make(pfMessage)
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		data = data[n:]
		var v pfField
		switch kind {
		case protowire.VarintType:
			v.number, n = protowire.ConsumeVarint(data)
		case protowire.BytesType:
			v.bytes, n = protowire.ConsumeBytes(data)
		default:
			t.Fatalf("field %d of wire type %d", field, kind)
		}
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		m[field] = append(m[field], v)
		data = data[n:]
	}
	return m
}

func (m pfMessage) number(field protowire.Number) uint64 {
	if len(m[field]) == 0 {
		return 0
	}
	return m[field][0].number
}

func (m pfMessage) text(field protowire.Number) string {
	if len(m[field]) == 0 {
		return ""
	}
	return string(m[field][0].bytes)
}

// pfTrace is the content of a file as a viewer reads it.
type pfTrace struct {
	path     map[uint64]string // of a track: its parents' names and its own, with slashes
	counters map[string][]pfValue
	slices   map[string][]string // NAME FROM-TO by track, in the order of their ends
	instants []string
}

type pfValue struct {
	time, bytes uint64
	packet      int // number of it in the file
}

func readPerfetto(t *testing.T, data []byte) *pfTrace {
	t.Helper()
	p := &pfTrace{path: make(map[uint64]string), counters: make(map[string][]pfValue),
		slices: make(map[string][]string)}
	stacks := make(map[uint64][]string)
	for i, packet := range readMessage(t, data)[pfTracePacket] {
		m := readMessage(t, packet.bytes)
		if (i == 0) != (m.number(pfPacketSequenceFlags) == pfStateCleared) || m.number(pfPacketSequence) != pfSequence {
			t.Fatalf("packet %d: %v", i, m)
		}
		if d := m[pfPacketDescriptor]; d != nil {
			v := readMessage(t, d[0].bytes)
			name := v.text(pfTrackName)
			if parent := v.number(pfTrackParent); parent != 0 {
				if p.path[parent] == "" {
					t.Fatalf("%s comes before its parent", name)
				}
				name = p.path[parent] + "/" + name
			}
			p.path[v.number(pfTrackUUID)] = name
			continue
		}
		e := readMessage(t, m[pfPacketTrackEvent][0].bytes)
		id, time := e.number(pfEventTrack), m.number(pfPacketTimestamp)
		track := p.path[id]
		if track == "" {
			t.Fatalf("packet %d is of a track that has no descriptor", i)
		}
		if !utf8.ValidString(e.text(pfEventName)) {
			t.Errorf("name %q", e.text(pfEventName))
		}
		switch e.number(pfEventType) {
		case pfCounter:
			if n := len(p.counters[track]); n > 0 && p.counters[track][n-1].time > time {
				t.Errorf("%s goes back in time, to %d", track, time)
			}
			p.counters[track] = append(p.counters[track], pfValue{time, e.number(pfEventValue), i})
		case pfSliceBegin:
			stacks[id] = append(stacks[id], fmt.Sprintf("%s %d", e.text(pfEventName), time))
		case pfSliceEnd:
			last := len(stacks[id]) - 1
			if last < 0 {
				t.Fatalf("%s: a slice ends that did not begin", track)
			}
			p.slices[track] = append(p.slices[track], fmt.Sprintf("%s-%d", stacks[id][last], time))
			stacks[id] = stacks[id][:last]
		case pfInstant:
			p.instants = append(p.instants, fmt.Sprintf("%s %d", e.text(pfEventName), time))
		}
	}
	for id, open := range stacks {
		if len(open) > 0 {
			t.Errorf("%s: %q never ends", p.path[id], open)
		}
	}
	return p
}

// of finds the counters whose path has this suffix.
func (p *pfTrace) of(t *testing.T, end string) []pfValue {
	t.Helper()
	for path, values := range p.counters {
		if strings.HasSuffix(path, end) {
			return values
		}
	}
	return nil
}

func highest(values []pfValue) (most uint64) {
	for _, v := range values {
		most = max(most, v.bytes)
	}
	return most
}

func latest(values []pfValue) uint64 {
	if len(values) == 0 {
		return 0
	}
	return values[len(values)-1].bytes
}

// TestPerfettoAgreesWithTheReport: counters reach the report's peaks of each level and device, and end with its
// remaining bytes; divided ones add up to the level at its peak.
func TestPerfettoAgreesWithTheReport(t *testing.T) {
	divided := 0
	traces := guest.ReportTraces(t)
	traces["several allocators"] = guest.Encoded(t, foreignTrace)
	for name, raw := range traces {
		s := summarized(t, raw, analyzer.Options{})
		data, written := replayed(t, Perfetto, runOf(raw))
		p := readPerfetto(t, data)
		check := func(track string, l report.Level) {
			values := p.of(t, track)
			if highest(values) != l.PeakBytes || latest(values) != l.LiveBytes {
				t.Errorf("%s, %s: highest %d, latest %d; the report has %d and %d", name, track, highest(values),
					latest(values), l.PeakBytes, l.LiveBytes)
			}
		}
		for _, d := range s.Devices {
			check(fmt.Sprintf("/driver memory, device %d", d.Index), d.Driver)
			check(fmt.Sprintf(" blocks, device %d", d.Index), d.Framework)
		}
		if len(s.Devices) > 1 {
			check("/driver memory, all devices", s.Driver)
			check(" blocks, all devices", s.Framework)
		}
		divided += checkDivided(t, name, p, s.Main())
		if len(written.Limits) > 0 || written.Summary.Main().PeakBytes != s.Main().PeakBytes {
			t.Errorf("%s: %q", name, written.Limits)
		}
	}
	if divided < 3 {
		t.Errorf("only %d divided levels", divided)
	}
}

// checkDivided replays each group of divided counters and returns how many there are.
func checkDivided(t *testing.T, name string, p *pfTrace, l report.Level) int {
	t.Helper()
	groups := make(map[string]map[string][]pfValue)
	for path, values := range p.counters {
		if parts := strings.SplitN(path, "/By ", 2); len(parts) == 2 {
			group, key, _ := strings.Cut(parts[1], "/")
			if groups[group] == nil {
				groups[group] = make(map[string][]pfValue)
			}
			groups[group][key] = values
		}
	}
	for group, counters := range groups {
		var end uint64
		for _, values := range counters {
			end += latest(values)
		}
		if end != l.LiveBytes {
			t.Errorf("%s: by %s, %d bytes are left; the report has %d", name, group, end, l.LiveBytes)
		}
		type change struct {
			pfValue
			key string
		}
		var changes []change
		for key, values := range counters {
			for _, v := range values {
				changes = append(changes, change{v, key})
			}
		}
		slices.SortFunc(changes, func(a, b change) int { return a.packet - b.packet })
		now := make(map[string]uint64)
		var sum, most uint64
		for _, c := range changes {
			sum += c.bytes - now[c.key]
			now[c.key] = c.bytes
			most = max(most, sum)
		}
		if most != l.PeakBytes {
			t.Errorf("%s: by %s, %d bytes at the peak; the report has %d", name, group, most, l.PeakBytes)
		}
	}
	return len(groups)
}

const hostileName = "</script><b>\"'&\x1b[31m\u202e\xff\n{{.}}"

// slicesTrace has steps, epochs, tags, marks, a lack of memory, and blocks of two owners.
var slicesTrace = fmt.Sprintf(`trace version=1
info key="process.command" value=%q
info key="process.pid" value="7"
info key="framework.torch" value="2.7.1"
string id=1 value="model"
string id=2 value="model.attn"
string id=3 value=%q
string id=4 value="memtrace.own"
thread id=1 tid=7 name="python3"
device index=0 name="Null GPU" uuid="GPU-0" total=85899345920
epoch seq=1 time=900 thread=1 count=1
step seq=2 time=1000 thread=1 count=1
alloc seq=3 time=2000 thread=1 level=driver mem=device device=0 addr=0x10000000 size=2097152
alloc seq=4 time=3000 thread=1 level=framework api=reportMemoryUsageToProfiler mem=device device=0 addr=0x10000000 size=1024 tag=1 allocated=1024 reserved=2097152
alloc seq=5 time=4000 thread=1 level=framework api=reportMemoryUsageToProfiler mem=device device=0 addr=0x10000400 size=512 tag=2 allocated=1536 reserved=2097152
free seq=6 time=5000 thread=1 level=framework api=reportMemoryUsageToProfiler mem=device device=0 addr=0x10000400 size=512 tag=1 allocated=1024 reserved=2097152
mark seq=7 time=5500 thread=1 name=3
mark seq=8 time=5600 thread=1 name=4
step seq=9 time=6000 thread=1 count=2
oom seq=10 time=6500 thread=1 level=framework device=0 size=4096 allocated=1024 reserved=2097152
alloc seq=11 time=7000 thread=1 level=framework api=reportMemoryUsageToProfiler mem=device device=0 addr=0x10000400 size=256 tag=3 allocated=1280 reserved=2097152
sample seq=12 time=7500 thread=1 device=0 size=3000000
end reason="exit" time=9000
`, hostileName, hostileName)

func TestPerfettoSlices(t *testing.T) {
	data, _ := replayed(t, Perfetto, runOf(guest.Encoded(t, slicesTrace)))
	p := readPerfetto(t, data)
	clean := readable(hostileName)
	if strings.ContainsAny(clean, "\x1b\n\u202e") || !utf8.ValidString(clean) {
		t.Errorf("name %q", clean)
	}
	for track, want := range map[string]string{
		"Steps": "step 1 1000-6000, step 2 6000-9000", "Epochs": "epoch 1 900-9000",
		"Tags of python3 (7)": "attn 4000-4000, model 3000-5000, " + clean + " 7000-7000",
	} {
		if got := strings.Join(p.slices[clean+"/"+track], ", "); got != want && !strings.Contains(track, "Tags") {
			t.Errorf("%s: %q, want %q", track, got, want)
		} else if strings.Contains(track, "Tags") && !strings.HasPrefix(got, "attn 4000-4000, model 3000-5000, ") {
			t.Errorf("%s: %q", track, got)
		}
	}
	got := strings.Join(p.instants, ", ")
	for _, want := range []string{clean + " 5500", "out of memory: 4.00 KiB 6500", "peak: 1.50 KiB 4000"} {
		if !strings.Contains(got, want) {
			t.Errorf("instants %q; want %q", got, want)
		}
	}
	if strings.Contains(got, "memtrace.own") {
		t.Errorf("instants %q", got)
	}
	for track, want := range map[string]uint64{"/reserved by PyTorch, device 0": 2097152,
		"/in use, as the device reports it, device 0": 3000000, "/PyTorch blocks, device 0": 1536} {
		if most := highest(p.of(t, track)); most != want {
			t.Errorf("%s: %d, want %d", track, most, want)
		}
	}
	narrow := runOf(guest.Encoded(t, slicesTrace))
	narrow.Count.Tag = "model.attn"
	data, _ = replayed(t, Perfetto, narrow)
	p = readPerfetto(t, data)
	if most := highest(p.of(t, "/PyTorch blocks, device 0")); most != 512 ||
		p.of(t, "/reserved by PyTorch, device 0") != nil ||
		p.of(t, "/in use, as the device reports it, device 0") != nil {
		t.Errorf("under a tag: %d bytes, %d values of the allocator", most,
			len(p.of(t, "/reserved by PyTorch, device 0")))
	}
}

// Blocks that are not kept individually count as others, and the file's writer reports that.
func TestPerfettoLimit(t *testing.T) {
	raw := guest.Encoded(t, slicesTrace)
	run := runOf(raw)
	run.Count.HistoryBlocks = 1
	data, written := replayed(t, Perfetto, run)
	p := readPerfetto(t, data)
	if len(written.Limits) != 1 || !strings.Contains(written.Limits[0], "know the 1 blocks") {
		t.Errorf("limits %q", written.Limits)
	}
	if kept, others := latest(p.of(t, "/By tag/model")), latest(p.of(t, "/By tag/others")); kept != 1024 ||
		others != 256 {
		t.Errorf("%d bytes of the block that is kept, %d of others", kept, others)
	}
}
