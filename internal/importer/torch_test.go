package importer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"memtrace/cuda"
	"memtrace/trace"
)

func imported(t testing.TB, pickle []byte) ([]trace.Event, Result, error) {
	t.Helper()
	events, _, result, err := run(t, Find("torch"), pickle)
	return events, result, err
}

func readAll(t testing.TB, r *trace.Reader) (all []trace.Event) {
	t.Helper()
	for {
		events, err := r.ReadBatch()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, events...)
	}
}

func snapshot(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/adam.pickle")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The program printed PyTorch's own counters when it took the snapshot: three steps of Adam on the null GPU, recorded
// from the beginning. PyTorch records requested sizes; the importer reconstructs the sizes of blocks.
func TestTorchAgreesWithItsCounters(t *testing.T) {
	const allocated, peak, reserved = 46286848, 54687744, 56623104
	events, result, err := imported(t, snapshot(t))
	if err != nil {
		t.Fatal(err)
	}
	var live, most, held uint64
	stacks := 0
	for _, e := range events {
		sign := uint64(1)
		switch e.Kind {
		case trace.EventFree:
			sign = ^uint64(0)
		case trace.EventAlloc:
		default:
			continue
		}
		if e.Level == cuda.LevelDriver {
			held += sign * e.Size
			continue
		}
		live += sign * e.Size
		most = max(most, live)
		if e.PyStack != 0 {
			stacks++
		}
		if e.Allocated != live || e.Reserved != held {
			t.Fatalf("event %d: counters %d, %d, sums %d, %d", e.Seq, e.Allocated, e.Reserved, live, held)
		}
	}
	if live != allocated || most != peak || held != reserved {
		t.Errorf("allocated %d, peak %d, reserved %d; PyTorch had %d, %d, %d", live, most, held, allocated,
			peak, reserved)
	}
	if stacks == 0 || len(result.Lacks) != 1 {
		t.Errorf("%d stacks, lacks %q", stacks, result.Lacks)
	}
}

func TestBadPicklesAreRefusedInOneSentence(t *testing.T) {
	whole := snapshot(t)
	for _, c := range []struct{ name, pickle, want string }{
		{"empty", "", "cut at offset 0"},
		{"cut", string(whole[:1000]), "cut at offset 1000"},
		{"code", "\x80\x02cos\nsystem\n(S'id'\ntR.", "holds more than data (instruction 0x63 at offset 2)"},
		{"other", "\x80\x04}.", "no memory snapshot"},
		{"number", "\x80\x04K\x01.", "no memory snapshot"},
		{"protocol", "\x80\x09.", "protocol 9"},
		{"memo", "\x80\x04h\x07.", "damaged at offset 2"},
		{"long", "\x80\x04X\xff\xff\xff\x7fab", "cut at offset 9"},
		{"again", "\x80\x04]}\x94(\x8c\x06action\x8c\x05alloc\x8c\x04addrK\x01\x8c\x04sizeK\x01uah\x00a.",
			"once more although it is a record"},
		{"underflow", "\x80\x04a.", "damaged at offset 2"},
	} {
		_, _, err := imported(t, []byte(c.pickle))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
}

// One snapshot of PyTorch 2.15 with all that a history can hold, in every protocol of pickles.
func TestTorchReadsEveryProtocol(t *testing.T) {
	want, r, result, err := run(t, Find("torch"), sample(t, "all.pickle"))
	if err != nil {
		t.Fatal(err)
	}
	var host uint64
	marks, tagged, oom := []string{}, map[string]uint64{}, uint64(0)
	for _, e := range want {
		switch {
		case e.Kind == trace.EventMark:
			marks = append(marks, r.Tables().String(e.Name))
		case e.Kind == trace.EventOOM:
			oom = e.Size
		case e.Mem == cuda.MemoryHost:
			host += e.Size
		case e.Tag != 0 && e.Level == cuda.LevelFramework:
			tagged[r.Tables().String(e.Tag)] += e.Size
		}
	}
	if host != 16<<20+4<<20 || oom != 1<<47 || tagged["private pool 0:1"] != 20<<20 || tagged["meta one"] != 512 {
		t.Errorf("pinned %d, out of memory for %d, tagged %v", host, oom, tagged)
	}
	if got := strings.Join(marks, "; "); got != "my forward; end of my forward; annotate: the pool's tensor" {
		t.Errorf("marks %s", got)
	}
	says(t, result, "Pinned host memory is what PyTorch pinned")
	for _, protocol := range []string{"0", "1", "2", "3", "5"} {
		data := sample(t, "all-protocol"+protocol+".pickle")
		if f, err := Recognize(bytes.NewReader(data), int64(len(data))); err != nil || f.Name != "torch" {
			t.Errorf("protocol %s: %v, %v", protocol, f, err)
		}
		got, names, _, err := run(t, Find("torch"), data)
		if err != nil || !slices.Equal(spelled(names, got), spelled(r, want)) {
			t.Errorf("protocol %s: %d events of %d, %v", protocol, len(got), len(want), err)
		}
	}
}

// spelled writes events with names for the ids, which go by the order in which a file is read.
func spelled(r *trace.Reader, events []trace.Event) (list []string) {
	for _, e := range events {
		tag, name := r.Tables().String(e.Tag), r.Tables().String(e.Name)
		frames, _ := r.Tables().PyStack(e.PyStack)
		e.Tag, e.Name, e.PyStack = 0, 0, 0
		list = append(list, fmt.Sprintf("%+v %q %q %d", e, tag, name, len(frames)))
	}
	return list
}

// Ranges that are kept in order must not cost the square of their number.
func TestTorchBoundsSegments(t *testing.T) {
	defer func(most int) { mostSegments = most }(mostSegments)
	mostSegments = 1 << 10
	var pickle bytes.Buffer
	pickle.WriteString("\x80\x02}(U\x08segments]U\x0ddevice_traces](](")
	for i := range mostSegments + 2 {
		at := binary.LittleEndian.AppendUint32(nil, uint32(1<<30-2048*i))
		pickle.WriteString("}(U\x06actionU\x0dsegment_allocU\x04addrJ" + string(at) + "U\x04sizeM\x00\x04u")
		if i%1000 == 999 {
			pickle.WriteString("e(")
		}
	}
	pickle.WriteString("eeu.")
	if _, _, err := imported(t, pickle.Bytes()); !errors.Is(err, errSegments) {
		t.Errorf("%v", err)
	}
}

func nameOf(r *trace.Reader, f trace.PyFrame) string {
	code, _ := r.Tables().Code(f.Code)
	return code.Name
}

// A history that begins late, of two devices: what was live before is found, and records are in the order of their
// time. A range that is unmapped may reach over what was mapped at its own time.
func TestTorchOfTwoDevices(t *testing.T) {
	events, r, result, err := run(t, Find("torch"), sample(t, "late.pickle"))
	if err != nil {
		t.Fatal(err)
	}
	live, reserved, last := map[int16]uint64{}, map[int16]uint64{}, int64(0)
	var reported []string
	for _, e := range events {
		if e.Time < last {
			t.Errorf("event %d is older than the one before", e.Seq)
		}
		last = e.Time
		sums := live
		if e.Level == cuda.LevelDriver {
			sums = reserved
		}
		if sums[e.Device] += e.Size; e.Kind == trace.EventFree {
			sums[e.Device] -= 2 * e.Size
		}
		if frames, _ := r.Tables().PyStack(e.PyStack); e.Time == 0 && len(frames) == 1 &&
			nameOf(r, frames[0]) == trace.BeforeFunction {
			reported = append(reported, fmt.Sprintf("%d:%x+%d", e.Device, e.Addr, e.Size))
		}
	}
	const mib = 1 << 20
	if live[0] != 2*mib-1024 || live[1] != 5120 || reserved[0] != 4*mib || reserved[1] != 2*mib+4*mib {
		t.Errorf("live %v, reserved %v", live, reserved)
	}
	want := []string{"0:30000000+2097152", "0:30000000+1024", "0:30000400+2096128", "1:20000000+2097152",
		"1:40000000+4194304", "1:40400000+8388608"}
	if !slices.Equal(reported, want) {
		t.Errorf("before: %v, want %v", reported, want)
	}
	says(t, result, "of blocks that are older (2)")
}
