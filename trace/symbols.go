package trace

import (
	"encoding/binary"
	"fmt"

	"memtrace/internal/section"
)

// MaxSymbolFrames bounds the frames of one code address.
const MaxSymbolFrames = 256

// SymbolFrame is one function at a code address.
type SymbolFrame struct {
	Function string // as a reader would write it; empty if unknown
	File     string // of the source; empty if unknown
	Line     uint32 // 0 unknown
	// address at which the function's code begins, in the numbers of Symbol.Address; 0 unknown, and for inlined
	// functions
	Start uint64
}

// Symbol names a code address, so that a trace can be read on another machine than the one it was recorded on.
type Symbol struct {
	Module  ModuleID      // the loaded object file that the address belongs to; 0 none
	Address uint64        // as in stacks
	Frames  []SymbolFrame // innermost first: inlined functions, then the one they were inlined into; at least one
}

// A symbols section is: uvarint number of texts, the texts; uvarint number of symbols, then for each: uvarint module,
// zigzag difference of the address to the symbol before, uvarint number of frames, and for each frame: uvarint
// function, uvarint file (1 + the number of a text, 0 none), uvarint line, uvarint start (1 + its distance below the
// address, 0 unknown).

// symbolEncoder collects symbols for one section.
type symbolEncoder struct {
	numbers map[string]uint64
	texts   []byte
	symbols []byte
	count   uint64
	address uint64
}

// text returns 1 + the number of a text, 0 for the empty one.
func (e *symbolEncoder) text(s string) uint64 {
	if s == "" {
		return 0
	}
	n, known := e.numbers[s]
	if !known {
		if e.numbers == nil {
			e.numbers = make(map[string]uint64)
		}
		n = uint64(len(e.numbers)) + 1
		e.numbers[s] = n
		e.texts = appendText(e.texts, s)
	}
	return n
}

func (e *symbolEncoder) add(s Symbol) {
	e.count++
	e.symbols = binary.AppendUvarint(e.symbols, uint64(s.Module))
	e.symbols = binary.AppendUvarint(e.symbols, zigzag(int64(s.Address-e.address)))
	e.symbols = binary.AppendUvarint(e.symbols, uint64(len(s.Frames)))
	e.address = s.Address
	for _, f := range s.Frames {
		start := uint64(0)
		if f.Start != 0 && f.Start <= s.Address {
			start = s.Address - f.Start + 1
		}
		for _, v := range []uint64{e.text(f.Function), e.text(f.File), uint64(f.Line), start} {
			e.symbols = binary.AppendUvarint(e.symbols, v)
		}
	}
}

func (e *symbolEncoder) size() int { return len(e.texts) + len(e.symbols) }

func (e *symbolEncoder) finish() []byte {
	payload := binary.AppendUvarint(nil, uint64(len(e.numbers)))
	payload = append(payload, e.texts...)
	payload = binary.AppendUvarint(payload, e.count)
	return append(payload, e.symbols...)
}

// WriteSymbols writes what code addresses are called, at once, in as many sections as it takes. A later definition of
// the same module and address replaces an earlier one.
func (w *Writer) WriteSymbols(symbols []Symbol) error {
	if err := w.usable(); err != nil || len(symbols) == 0 {
		return err
	}
	for _, s := range symbols {
		if err := s.Check(); err != nil {
			return fmt.Errorf("write trace: %w", err)
		}
	}
	if err := w.flushDictionary(); err != nil { // modules precede what refers to them
		return err
	}
	for len(symbols) > 0 {
		var e symbolEncoder
		for len(symbols) > 0 && e.size() < dictionaryTarget {
			e.add(symbols[0])
			symbols = symbols[1:]
		}
		if err := w.sections.Write(section.Symbols, e.finish(), true); err != nil {
			return err
		}
	}
	return nil
}

// Check returns what prevents a symbol from being written.
func (s Symbol) Check() error {
	if len(s.Frames) == 0 || len(s.Frames) > MaxSymbolFrames {
		return fmt.Errorf("symbol of %d frames, 1 to %d are allowed", len(s.Frames), MaxSymbolFrames)
	}
	total := 0
	for _, f := range s.Frames {
		if len(f.Function) > MaxString || len(f.File) > MaxString {
			return fmt.Errorf("symbol whose name or file has more than %d bytes", MaxString)
		}
		total += len(f.Function) + len(f.File)
	}
	if total > section.MaxBytes/2 {
		return fmt.Errorf("symbol whose names and files have %d bytes, at most %d are allowed", total,
			section.MaxBytes/2)
	}
	return nil
}

// decodeSymbols adds the symbols of a section to tables. Those before a faulty one are kept.
func decodeSymbols(payload []byte, tables *Tables) error {
	d := decoder{data: payload}
	n := d.uvarint()
	if n > uint64(len(d.data)) { // a text takes at least one byte
		d.fail()
		n = 0
	}
	texts := make([]string, 0, n)
	for range n {
		texts = append(texts, d.text(MaxString))
	}
	text := func() string {
		n := d.uvarint()
		if n > uint64(len(texts)) {
			d.fail()
		}
		if n == 0 || d.failed {
			return ""
		}
		return texts[n-1]
	}
	s := Symbol{}
	for range d.uvarint() {
		s.Module = ModuleID(d.id())
		s.Address += uint64(unzigzag(d.uvarint()))
		frames := d.uvarint()
		// a frame takes at least four bytes
		if frames == 0 || frames > MaxSymbolFrames || 4*frames > uint64(len(d.data)) {
			d.fail()
			break
		}
		s.Frames = s.Frames[:0]
		for range frames {
			f := SymbolFrame{Function: text(), File: text()}
			f.Line = d.id()
			if start := d.uvarint(); start > s.Address {
				d.fail()
			} else if start != 0 {
				f.Start = s.Address - start + 1
			}
			s.Frames = append(s.Frames, f)
		}
		if d.failed {
			break
		}
		tables.AddSymbol(s)
	}
	if d.failed {
		return fmt.Errorf("symbols section: %w", errShort)
	}
	return nil
}

// symbolKey is what a symbol is looked up by.
type symbolKey struct {
	module  ModuleID
	address uint64
}

// AddSymbol names a code address; the frames are copied. A later definition replaces an earlier one.
func (t *Tables) AddSymbol(s Symbol) {
	if t.symbols == nil {
		t.symbols = make(map[symbolKey][]SymbolFrame)
	}
	s.Frames = keep(&t.symbolFrames, s.Frames)
	t.symbols[symbolKey{s.Module, s.Address}] = s.Frames
	t.log = append(t.log, tableEntry{kind: entrySymbol, value: s})
}

// Symbol returns the names of a code address of a module, innermost (inlined) function first; ok=false if the trace has
// none.
func (t *Tables) Symbol(module ModuleID, address uint64) (frames []SymbolFrame, ok bool) {
	frames, ok = t.symbols[symbolKey{module, address}]
	return frames, ok
}

// Symbols returns how many code addresses the trace has names for.
func (t *Tables) Symbols() int { return len(t.symbols) }
