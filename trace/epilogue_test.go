package trace

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"memtrace/internal/section"
)

// someSymbols returns n symbols whose names contain their number.
func someSymbols(n int) []Symbol {
	symbols := make([]Symbol, n)
	for i := range symbols {
		address := 0x7f0000000000 + uint64(i*i*16)
		symbols[i] = Symbol{Module: ModuleID(i % 3), Address: address, Frames: []SymbolFrame{
			{Function: fmt.Sprintf("inner%d", i), File: fmt.Sprintf("/src/f%d.cc", i%50), Line: uint32(i)},
			{Function: fmt.Sprintf("outer%d", i), File: "/src/main.cc", Line: 7, Start: address - uint64(i)},
		}}
	}
	return symbols
}

func wantSymbols(t *testing.T, tables *Tables, symbols []Symbol) {
	t.Helper()
	for _, s := range symbols {
		if frames, ok := tables.Symbol(s.Module, s.Address); !ok || !reflect.DeepEqual(frames, s.Frames) {
			t.Fatalf("symbol at %#x is %+v, want %+v", s.Address, frames, s.Frames)
		}
	}
	if tables.Symbols() != len(symbols) {
		t.Errorf("%d symbols, want %d", tables.Symbols(), len(symbols))
	}
}

// writeFile puts a trace into a file of its own.
func writeFile(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.bin")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Many symbols take several sections, each with texts of its own.
func TestSymbolsOfManySections(t *testing.T) {
	var file bytes.Buffer
	w, err := NewWriter(&file, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	symbols := someSymbols(60000)
	if err := errors.Join(w.WriteSymbols(symbols), w.Close(End{Reason: "exit"})); err != nil {
		t.Fatal(err)
	}
	_, r := readAll(t, file.Bytes())
	wantSymbols(t, r.Tables(), symbols)
	if h := r.Health(); h.Sections < 4 || h.Truncated {
		t.Errorf("health %+v", h)
	}
	if perSymbol := file.Len() / len(symbols); perSymbol > 40 {
		t.Errorf("%d bytes for each symbol", perSymbol)
	}
}

func TestLaterSymbolReplaces(t *testing.T) {
	var tables Tables
	tables.AddSymbol(Symbol{Module: 1, Address: 5, Frames: []SymbolFrame{{Function: "a"}}})
	tables.AddSymbol(Symbol{Module: 1, Address: 5, Frames: []SymbolFrame{{Function: "b"}}})
	if frames, _ := tables.Symbol(1, 5); len(frames) != 1 || frames[0].Function != "b" {
		t.Errorf("frames %+v", frames)
	}
}

// appendAt adds symbols to the trace at path.
func appendAt(path string, symbols []Symbol) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(AppendSymbols(file, symbols), file.Close())
}

func TestAppendSymbols(t *testing.T) {
	whole := mixedTrace(t)
	events, before := readAll(t, whole)
	wantEnd, _ := before.End()
	path := writeFile(t, whole)
	symbols := someSymbols(1000)
	if err := appendAt(path, symbols[:10]); err != nil {
		t.Fatal(err)
	}
	if err := appendAt(path, symbols[10:]); err != nil { // once more
		t.Fatal(err)
	}
	file := readFile(t, path)
	if !bytes.HasPrefix(file, whole) {
		t.Error("what stood in the file has changed")
	}
	got, r := readAll(t, file)
	wantEvents(t, got, events)
	known := before.Tables().Symbols()
	for _, s := range symbols {
		if frames, ok := r.Tables().Symbol(s.Module, s.Address); !ok || !reflect.DeepEqual(frames, s.Frames) {
			t.Fatalf("symbol at %#x is %+v, want %+v", s.Address, frames, s.Frames)
		}
	}
	if r.Tables().Symbols() != len(symbols)+known {
		t.Errorf("%d symbols, want %d", r.Tables().Symbols(), len(symbols)+known)
	}
	if h := r.Health(); h.Truncated || h.Trailing != 0 || h.Epilogue != "" || h.Bytes != int64(len(file)) {
		t.Errorf("health %+v", h)
	}
	if end, ok := r.End(); !ok || end != wantEnd {
		t.Errorf("end %+v, want %+v", end, wantEnd)
	}
	want, err := ReadIndex(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	if index, err := ReadIndex(bytes.NewReader(file), int64(len(file))); err != nil || !reflect.DeepEqual(index, want) {
		t.Errorf("index %+v, error %v", index, err)
	}
	unknown, err := NewReader(iotest.OneByteReader(bytes.NewReader(file)), -1)
	if err != nil {
		t.Fatal(err)
	}
	if _, h := drain(t, unknown); h.Trailing != 0 || h.Epilogue != "" || unknown.Tables().Symbols() != len(symbols)+
		known {
		t.Errorf("of unknown size: %d symbols, health %+v", unknown.Tables().Symbols(), h)
	}
	if text := dump(t, file); dump(t, encode(t, text)) != text {
		t.Error("the text changes when it is encoded and dumped again")
	}
}

// However the epilogue is cut or damaged, the trace before it is unchanged.
func TestDamagedEpilogueLosesOnlyItself(t *testing.T) {
	whole := encodeTrace(t, trainingStream(50, 1), 20)
	path := writeFile(t, whole)
	symbols := someSymbols(20)
	for _, part := range [][]Symbol{symbols[:10], symbols[10:]} {
		if err := appendAt(path, part); err != nil {
			t.Fatal(err)
		}
	}
	file := readFile(t, path)
	events, _ := readAll(t, whole)
	check := func(what string, damaged []byte, wholeSection bool) {
		t.Helper()
		got, r := readAll(t, damaged)
		wantEvents(t, got, events)
		h := r.Health()
		_, ended := r.End()
		if h.Truncated || !ended || (h.Epilogue == "") != wholeSection || (h.Trailing == 0) != wholeSection ||
			h.Bytes+h.Trailing != int64(len(damaged)) {
			t.Fatalf("%s: ended %v, health %+v", what, ended, h)
		}
		for i, s := range symbols {
			frames, ok := r.Tables().Symbol(s.Module, s.Address)
			if ok && !reflect.DeepEqual(frames, s.Frames) || !ok && i == 0 && wholeSection &&
				len(damaged) > len(whole) {
				t.Fatalf("%s: symbol %d is %+v", what, i, frames)
			}
		}
	}
	ends := map[int]bool{}
	for at := len(whole); at < len(file); at += section.HeaderSize + int(section.ParseHeader(file[at:]).Length) {
		ends[at] = true
	}
	for n := len(whole); n < len(file); n++ {
		check(fmt.Sprintf("cut at %d", n), file[:n], ends[n])
	}
	for bit := len(whole) * 8; bit < len(file)*8; bit += 3 {
		damaged := bytes.Clone(file)
		damaged[bit/8] ^= 1 << (bit % 8)
		check(fmt.Sprintf("bit %d", bit), damaged, false)
	}
}

// What an interrupted attempt left after the end is replaced by the next one.
func TestAppendSymbolsRepairsCutEpilogue(t *testing.T) {
	whole := encodeTrace(t, trainingStream(50, 1), 20)
	path := writeFile(t, whole)
	symbols := someSymbols(20)
	if err := appendAt(path, symbols); err != nil {
		t.Fatal(err)
	}
	file := readFile(t, path)
	for _, n := range []int{len(whole) + section.HeaderSize, len(whole) + 40, len(file) - 3} {
		cut := writeFile(t, file[:n])
		if err := appendAt(cut, symbols); err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		_, r := readAll(t, readFile(t, cut))
		wantSymbols(t, r.Tables(), symbols)
		if h := r.Health(); h.Trailing != 0 || h.Epilogue != "" {
			t.Errorf("cut at %d: health %+v", n, h)
		}
	}
}

func TestAppendSymbolsRefuses(t *testing.T) {
	whole := encodeTrace(t, trainingStream(50, 1), 20)
	newer := bytes.Clone(whole)
	newer[8] = 2
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	cases := []struct {
		name string
		file []byte
		want error
		text string
	}{
		{"killed", whole[:mapSections(t, whole).starts[3]], ErrNoEnd, "runs or was killed, or it was cut"},
		{"cut", whole[:len(whole)-1], ErrNoEnd, "stops at offset"},
		{"damaged before the end", flipped, ErrNoEnd, "checksum"},
		{"newer", newer, ErrVersion, "has version 2"},
		{"no trace", []byte("something else entirely"), ErrNotTrace, ""},
		{"empty", nil, ErrEmpty, ""},
		{"something behind the end", append(bytes.Clone(whole), "a note from somebody, long enough"...), nil,
			"no part of a trace"},
	}
	for _, c := range cases {
		path := writeFile(t, c.file)
		err := appendAt(path, someSymbols(3))
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want %v with %q", c.name, err, c.want, c.text)
		}
		if !bytes.Equal(readFile(t, path), c.file) {
			t.Errorf("%s: the file was changed", c.name)
		}
	}
}
