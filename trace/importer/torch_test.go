package importer

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"memtrace/cuda"
	"memtrace/trace"
)

func imported(t testing.TB, pickle []byte) ([]trace.Event, Result, error) {
	t.Helper()
	var file bytes.Buffer
	w, err := trace.NewWriter(&file, trace.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	result, err := Find("torch").Import(w, bytes.NewReader(pickle), int64(len(pickle)), Options{})
	if err != nil {
		return nil, result, err
	}
	r, err := trace.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var all []trace.Event
	for {
		events, err := r.ReadBatch()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, events...)
	}
	if len(all) != result.Events {
		t.Fatalf("%d events written, %d read", result.Events, len(all))
	}
	return all, result, nil
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
// from the beginning. PyTorch writes down what was asked for; the sizes of blocks are found again by the importer.
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
		t.Errorf("allocated %d, peak %d, reserved %d; PyTorch had %d, %d, %d", live, most, held, allocated, peak, reserved)
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
		{"underflow", "\x80\x04a.", "damaged at offset 2"},
	} {
		_, _, err := imported(t, []byte(c.pickle))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
}

func FuzzTorch(f *testing.F) {
	f.Add(snapshot(f))
	f.Add([]byte("\x80\x02cos\nsystem\n(S'id'\ntR."))
	f.Add([]byte("\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces]]au."))
	f.Fuzz(func(t *testing.T, pickle []byte) { imported(t, pickle) })
}
