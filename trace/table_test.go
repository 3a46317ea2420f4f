package trace

import (
	"bytes"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"memtrace/internal/section"
)

func TestTablesFromFile(t *testing.T) {
	_, r := readAll(t, encode(t, everyLine()))
	tables := r.Tables()
	if got := tables.String(3); got != "model.encoder" || tables.String(99) != "" {
		t.Errorf("strings %q, %q", got, tables.String(99))
	}
	if got := tables.Stack(5); !reflect.DeepEqual(got, []uint64{0x7f0000001234, 0x401020, 0, 1<<64 - 1}) ||
		tables.Stack(7) != nil {
		t.Errorf("stacks %x, %x", got, tables.Stack(7))
	}
	if got := tables.StackEnd(8); got != StackInterpreter || tables.StackEnd(5) != StackWhole ||
		tables.StackEnd(99) != StackWhole {
		t.Errorf("stack ends %v, %v, %v", got, tables.StackEnd(5), tables.StackEnd(99))
	}
	frames, end := tables.PyStack(13)
	want := []PyFrame{{10, 1<<32 - 1, true, 1<<64 - 1}, {11, 0, false, 0}, {10, 12, false, 0x7f00}, {11, 3, true, 0}}
	if !reflect.DeepEqual(frames, want) || end != StackDepth {
		t.Errorf("Python stack %+v, end %v", frames, end)
	}
	if frames, end := tables.PyStack(99); frames != nil || end != StackWhole {
		t.Errorf("unknown Python stack %+v, end %v", frames, end)
	}
	code, ok := tables.Code(10)
	if wantCode := (Code{ID: 10, Name: "forward", QualName: "Model.forward", File: "/home/me/train é.py", FirstLine: -7,
		Table: LinesLocations,
		Lines: []byte{0x80, 0, 0x7a, 0xff}, ModuleCall: true}); !ok || !reflect.DeepEqual(code, wantCode) {
		t.Errorf("code %+v", code)
	}
	if _, ok := tables.Code(99); ok {
		t.Error("an unknown code object is found")
	}
	if stacks, pystacks, codes := tables.Sizes(); stacks != 4 || pystacks != 2 || codes != 3 {
		t.Errorf("%d stacks, %d Python stacks, %d code objects", stacks, pystacks, codes)
	}
	symbol, ok := tables.Symbol(1, 0x401020)
	wantSymbol := []SymbolFrame{{"inlined<int>", "/src/a b.h", 3, 0}, {"main", "", 1<<32 - 1, 0x401000}}
	if !ok || !reflect.DeepEqual(symbol, wantSymbol) || tables.Symbols() != 2 {
		t.Errorf("symbol %+v, %d in all", symbol, tables.Symbols())
	}
	if _, ok := tables.Symbol(2, 0x401020); ok {
		t.Error("a symbol of another module is found")
	}
	if got := tables.Modules(); len(got) != 2 || got[0].Size != 0 || got[1].Size != 123456 || got[1].ModTime != -5 {
		t.Errorf("modules %+v", got)
	}
	if th, ok := tables.Thread(1); !ok || th.Name != "renamed" || th.TID != 4711 {
		t.Errorf("thread %+v", th)
	}
	if _, ok := tables.Thread(2); ok {
		t.Error("an unknown thread is found")
	}
	if got := tables.Devices(); len(got) != 1 || got[0].TotalBytes != 80<<30 {
		t.Errorf("devices %+v", got)
	}
	if r.Info()["process.pid"] != "4711" {
		t.Errorf("info %q", r.Info())
	}
	if end, ok := r.End(); !ok ||
		end != (End{Reason: "exit", LostRecords: 1, LostRings: 2, LostDict: 3, EventCount: 5, Time: -1}) {
		t.Errorf("end %+v", end)
	}
	if records, rings, dict := r.Lost(); records != 12 || rings != 2 || dict != 3 {
		t.Errorf("lost %d, %d, %d; lost events say 12", records, rings, dict)
	}
}

func TestModuleAtTakesTheLatest(t *testing.T) {
	var tables Tables
	tables.AddModule(Module{ID: 1, Start: 100, End: 200, Path: "old"})
	tables.AddModule(Module{ID: 2, Start: 150, End: 300, Path: "new"})
	for at, want := range map[uint64]string{99: "", 100: "old", 149: "old", 150: "new", 299: "new", 300: ""} {
		tables.AddStack(Stack{ID: StackID(at), Frames: []uint64{at + 1}})
		if m, ok := tables.ModuleAt(tables.Stack(StackID(at))[0] - 1); m.Path != want || ok != (want != "") {
			t.Errorf("%d is in %q, want %q", at, m.Path, want)
		}
	}
}

func TestFirstDefinitionStays(t *testing.T) {
	var tables Tables
	tables.AddString(1, "a")
	tables.AddString(1, "b")
	tables.AddStack(Stack{ID: 1, Frames: []uint64{1}})
	tables.AddStack(Stack{ID: 1, Frames: []uint64{2}})
	tables.AddPyStack(PyStack{ID: 1, Frames: []PyFrame{{Code: 1}}})
	tables.AddPyStack(PyStack{ID: 1, Frames: []PyFrame{{Code: 2}}})
	tables.AddCode(Code{ID: 1, Name: "a"})
	tables.AddCode(Code{ID: 1, Name: "b"})
	py, _ := tables.PyStack(1)
	code, _ := tables.Code(1)
	if tables.String(1) != "a" || tables.Stack(1)[0] != 1 || py[0].Code != 1 || code.Name != "a" {
		t.Errorf("string %q, stack %v, Python stack %v, code %v", tables.String(1), tables.Stack(1), py, code)
	}
}

func TestDevicesAreInOrder(t *testing.T) {
	var tables Tables
	for _, d := range []Device{{Index: 2}, {Index: 0}, {Index: 1, Name: "x"}, {Index: 1, Name: "y"}} {
		tables.AddDevice(d)
	}
	want := []Device{{Index: 0}, {Index: 1, Name: "y"}, {Index: 2}}
	if got := tables.Devices(); !reflect.DeepEqual(got, want) {
		t.Errorf("devices %v, want %v", got, want)
	}
}

// What a dictionary costs in memory is a fixed multiple of its uncompressed size, which the ratio limit ties to the
// size of the file.
func TestDictionaryMemoryIsBounded(t *testing.T) {
	// The smallest entries there are, of each kind that keeps more than a string.
	for name, entry := range map[string]func(e *entryEncoder, dst []byte, i uint32) []byte{
		"threads": func(e *entryEncoder, dst []byte, _ uint32) []byte { return e.appendThread(dst, Thread{ID: 1}) },
		"modules": func(e *entryEncoder, dst []byte, i uint32) []byte {
			return e.appendModule(dst, Module{Start: uint64(i % 127), End: 127})
		},
		"stacks": func(e *entryEncoder, dst []byte, i uint32) []byte {
			return e.appendStack(dst, Stack{ID: StackID(i)})
		},
		"pystacks": func(e *entryEncoder, dst []byte, i uint32) []byte {
			return e.appendPyStack(dst, PyStack{ID: StackID(i)})
		},
		"code": func(e *entryEncoder, dst []byte, i uint32) []byte { return e.appendCode(dst, Code{ID: CodeID(i)}) },
	} {
		var e entryEncoder
		var payloads [][]byte
		i := uint32(0)
		for len(payloads) < 32 {
			var payload []byte
			for ; len(payload) < 32<<10; i++ {
				payload = entry(&e, payload, i)
			}
			payloads = append(payloads, payload)
		}
		checkMemory(t, name, section.Dictionary, payloads)
	}
	var payloads [][]byte
	for i := range uint64(32) {
		var e symbolEncoder
		for j := range uint64(4000) {
			e.add(Symbol{Address: i<<16 + j, Frames: make([]SymbolFrame, 1)})
		}
		payloads = append(payloads, e.finish())
	}
	checkMemory(t, "symbols", section.Symbols, payloads)
}

// checkMemory compares what is kept of sections with their size.
func checkMemory(t *testing.T, name string, kind section.Kind, payloads [][]byte) {
	t.Helper()
	var file bytes.Buffer
	w, err := section.NewWriter(&file, 0, fileHead())
	if err != nil {
		t.Fatal(err)
	}
	raw := 0
	for _, payload := range payloads {
		raw += len(payload)
		if err := w.Write(kind, payload, true); err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	_, r := readAll(t, file.Bytes())
	runtime.GC()
	runtime.ReadMemStats(&after)
	if h := r.Health(); h.Truncated {
		t.Fatalf("%s: health %+v", name, h)
	}
	kept := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	if kept > 64*int64(raw) {
		t.Errorf("%d bytes of %s keep %d bytes", raw, name, kept)
	}
	t.Logf("%s: %.1f times their size", name, float64(kept)/float64(raw))
	runtime.KeepAlive(r)
}

func TestWriterRefusesWhatReadersWould(t *testing.T) {
	w, err := NewWriter(&bytes.Buffer{}, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", MaxString+1)
	for name, err := range map[string]error{
		"string": w.WriteString(1, long), "module": w.WriteModule(Module{Path: long}),
		"thread":       w.WriteThread(Thread{Name: long}),
		"code":         w.WriteCode(Code{QualName: long}),
		"line table":   w.WriteCode(Code{Lines: make([]byte, MaxLineTable+1)}),
		"python stack": w.WritePyStack(PyStack{Frames: make([]PyFrame, MaxFrames+1)}),
		"device":       w.WriteDevice(Device{UUID: long}),
		"symbol":       w.WriteSymbols([]Symbol{{Frames: []SymbolFrame{{File: long}}}}),
		"no frames":    w.WriteSymbols([]Symbol{{Address: 1}}),
		"many frames":  w.WriteSymbols([]Symbol{{Frames: make([]SymbolFrame, MaxSymbolFrames+1)}}),
		"stack":        w.WriteStack(Stack{Frames: make([]uint64, MaxFrames+1)}),
		"info":         w.WriteInfo(Info{"a": strings.Repeat("x", section.MaxBytes)}),
		"kind 0":       w.WriteEvents([]Event{{}}),
		"kind":         w.WriteEvents([]Event{{Kind: eventKindCount}}), "end": w.Close(End{Reason: long}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := w.Close(End{}); err != nil {
		t.Errorf("the writer is unusable after a refusal: %v", err)
	}
	if err := w.Flush(0); err != ErrClosed {
		t.Errorf("flush after close: %v", err)
	}
}
