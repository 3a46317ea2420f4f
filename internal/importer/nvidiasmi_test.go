package importer

import (
	"bytes"
	"encoding/binary"
	"maps"
	"strings"
	"testing"
	"unicode/utf16"

	"memtrace/trace"
)

// in16 writes a text as UTF-16.
func in16(text string, order binary.AppendByteOrder, mark bool) string {
	var data []byte
	if mark {
		data = order.AppendUint16(data, 0xfeff)
	}
	for _, unit := range utf16.Encode([]rune(text)) {
		data = order.AppendUint16(data, unit)
	}
	return string(data)
}

// peaks are the most bytes that each device held, and all of them at once under -1. Frees must name what is there.
func peaks(t *testing.T, events []trace.Event) map[int16]uint64 {
	t.Helper()
	most, held, live := map[int16]uint64{}, map[int16]uint64{}, map[uint64]trace.Event{}
	for _, e := range events {
		switch e.Kind {
		case trace.EventAlloc:
			if other, taken := live[e.Addr]; taken {
				t.Errorf("event %d: the address of event %d", e.Seq, other.Seq)
			}
			live[e.Addr] = e
			held[e.Device] += e.Size
			held[-1] += e.Size
		case trace.EventFree:
			if live[e.Addr].Size != e.Size || live[e.Addr].Device != e.Device {
				t.Errorf("event %d frees what is not there", e.Seq)
			}
			delete(live, e.Addr)
			held[e.Device] -= e.Size
			held[-1] -= e.Size
		}
		for device, bytes := range held {
			most[device] = max(most[device], bytes)
		}
	}
	return most
}

// TestLogsOfNvidiaSMI reads logs as they come from other settings, countries, shells and disks that were full.
func TestLogsOfNvidiaSMI(t *testing.T) {
	const mib, heading, nothing = 1 << 20, "memory.used [MiB]\n", ""
	one := func(used uint64) map[int16]uint64 { return map[int16]uint64{0: used, -1: used} }
	timed := "timestamp, memory.used [MiB]\n2026/08/01 03:59:40.361, "
	for _, c := range []struct {
		name, text string
		columns    string
		want       map[int16]uint64
		words      string // what it lacks, or the error if want is nil
	}{
		{"two devices", "index, memory.used [MiB]\n0, 1000 MiB\n1, 10 MiB\n0, 1200 MiB\n1, 10 MiB\n0, 1000 MiB\n1, 300 MiB\n",
			nothing, map[int16]uint64{0: 1200 * mib, 1: 300 * mib, -1: 1300 * mib}, ""},
		{"devices by their own numbers", "index, memory.used [MiB]\n7, 5 MiB\n2, 6 MiB\n", nothing,
			map[int16]uint64{7: 5 * mib, 2: 6 * mib, -1: 11 * mib}, ""},
		{"devices by UUID", "uuid, memory.used [MiB]\nGPU-9f2a1c3e-aaaa, 5 MiB\nGPU-0a2a1c3e-bbbb, 6 MiB\n", nothing,
			map[int16]uint64{0: 5 * mib, 1: 6 * mib, -1: 11 * mib}, ""},
		{"PowerShell", in16(timed+"100 MiB\r\n", binary.LittleEndian, true), nothing, one(100 * mib), ""},
		{"big endian", in16(timed+"100 MiB\r\n", binary.BigEndian, true), nothing, one(100 * mib), ""},
		{"no mark", in16(timed+"100 MiB\r\n", binary.LittleEndian, false), nothing, one(100 * mib), ""},
		{"no mark, big endian", in16(timed+"100 MiB\r\n", binary.BigEndian, false), nothing, one(100 * mib), ""},
		{"UTF-16 that was cut", in16(timed+"100 MiB\r\n", binary.LittleEndian, true) + "2", nothing, one(100 * mib),
			"The last line is cut"},
		{"thousands", heading + "1,024 MiB\n", nothing, one(1024 * mib), ""},
		{"many thousands", heading + "1,234,567 MiB\n", nothing, one(1234567 * mib), ""},
		{"thousands in quotes", "index,memory.used [MiB]\n0,\"1,024 MiB\"\n", nothing, one(1024 * mib), ""},
		{"thousands behind an index", "index, memory.used [MiB]\n0, 1,024 MiB\n", nothing, one(1024 * mib), ""},
		{"thousands without blanks", "index,memory.used [MiB]\n0,1,024 MiB\n", nothing, nil,
			"more fields than the heading"},
		{"Switzerland", heading + "1'024 MiB\n", nothing, one(1024 * mib), ""},
		{"France", heading + "1\u202f024 MiB\n", nothing, one(1024 * mib), ""},
		{"a decimal comma", heading + "3,5 MiB\n", nothing, one(7 * mib / 2), ""},
		{"a decimal point", heading + "3.5 MiB\n", nothing, one(7 * mib / 2), ""},
		{"both", heading + "1.024,5 MiB\n", nothing, one(1024*mib + mib/2), ""},
		{"both, in English", heading + "1,024.5 MiB\n", nothing, one(1024*mib + mib/2), ""},
		{"semicolons", "index;memory.used [MiB]\n0;1.024,5 MiB\n", nothing, one(1024*mib + mib/2), ""},
		{"one or a thousand", heading + "1.024 MiB\n", nothing, nil,
			"line 2: \"1.024 MiB\": the number can be read in two ways"},
		{"no groups of three", heading + "1,02,4 MiB\n", nothing, nil, "not a number of MiB"},
		{"a cut number", heading + "1,024 MiB\n70", nothing, one(1024 * mib), "The last line is cut"},
		{"a cut number without units", "memory.used [MiB]\n1024\n70", nothing, one(1024 * mib), "The last line is cut"},
		{"a whole last line", heading + "1 MiB\n70 MiB", nothing, one(70 * mib), ""},
		{"a number without its unit", heading + "100 MiB\n70\n80 MiB\n", nothing, nil,
			"line 3: \"70\": the memory in use has no unit"},
		{"backwards", timed + "5 MiB\n2026/08/01 03:59:39.361, 9 MiB\n", nothing, one(9 * mib),
			"Samples whose time is before that of the one above: 1"},
		{"more than there is", "memory.used [MiB], memory.total [MiB]\n20000 MiB, 16160 MiB\n", nothing, nil,
			"line 2: \"20000 MiB, 16160 MiB\": more memory is in use than the device has"},
		{"a bad total", "memory.used [MiB], memory.total [MiB]\n2 MiB, lots\n", nothing, nil,
			"the memory of the device is not a number"},
		{"no heading", "2025/09/08 14:14:37.120, 0, 11409\n2025/09/08 14:14:38.123, 0, 11409\n", nothing, nil,
			"line 1: \"2025/09/08 14:14:37.120, 0, 11409\": no heading says which column is memory.used"},
		{"no heading, units", "0, 11409 MiB, 37 %\n", nothing, nil, "no heading says which column"},
		{"no heading, numbers", "0, 11409\n1, 3\n", nothing, nil, "no heading says which column"},
		{"no heading, an address", "00000000:3B:00.0, 11409\n", nothing, nil, "no heading says which column"},
		{"no heading, a name", "NVIDIA A100-SXM4-40GB, 11409\n", nothing, nil, "no heading says which column"},
		{"columns", "2025/09/08 14:14:37.120, 1, 11409\n", "timestamp,index,memory.used",
			map[int16]uint64{1: 11409 * mib, -1: 11409 * mib}, ""},
		{"wrong columns", "1, 2\n", "index,power.draw", nil, "--columns names no memory.used"},
		{"only values", "3 MiB\n1,200 MiB\n", nothing, one(1200 * mib), ""},
	} {
		f, err := Recognize(strings.NewReader(c.text), int64(len(c.text)))
		if err != nil || f.Name != "nvidia-smi" {
			t.Errorf("%s: recognized as %v, %v", c.name, f, err)
			continue
		}
		var file bytes.Buffer
		w, err := trace.NewWriter(&file, trace.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		o := Options{}
		if c.columns != "" {
			o.Columns = strings.Split(c.columns, ",")
		}
		result, err := f.Import(w, strings.NewReader(c.text), int64(len(c.text)), o)
		if c.want == nil {
			if err == nil || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%s: %v, want %q", c.name, err, c.words)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		r, err := trace.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
		if err != nil {
			t.Fatal(err)
		}
		if got := peaks(t, readAll(t, r)); !maps.Equal(got, c.want) {
			t.Errorf("%s: peaks %v, want %v", c.name, got, c.want)
		}
		lacks := strings.Join(result.Lacks, "\n")
		if strings.Contains(lacks, "left out") != strings.Contains(result.Brief, "left out") {
			t.Errorf("%s: %q, %q", c.name, result.Brief, lacks)
		}
		if !strings.Contains(lacks, c.words) || c.words == "" && strings.Contains(lacks, "left out") {
			t.Errorf("%s: lacks %q, want %q", c.name, lacks, c.words)
		}
	}
}
