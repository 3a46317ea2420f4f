package textform

import (
	"errors"

	"memtrace/trace"
)

// symbol writes a line for each frame; each line after the first is the function that the one before was inlined into.
func (t *writer) symbol(s trace.Symbol) {
	for i, f := range s.Frames {
		if i > 0 {
			t.flushLine()
		}
		t.line = append(t.line, "symbol"...)
		t.number("module", uint64(s.Module))
		t.hex("address", s.Address)
		if i > 0 {
			t.number("outer", 1)
		}
		t.quoted("function", f.Function)
		t.quoted("file", f.File)
		t.number("line", uint64(f.Line))
		if f.Start != 0 {
			t.hex("start", f.Start)
		}
	}
}

// parseSymbol collects symbols; they are written when another word follows.
func parseSymbol(p *parser) error {
	r := argReader{p: p}
	s := trace.Symbol{Module: trace.ModuleID(r.number("module", 32)), Address: r.number("address", 64)}
	outer := r.number("outer", 1) != 0
	frame := trace.SymbolFrame{Function: r.text("function"), File: r.text("file"), Line: uint32(r.number("line", 32)),
		Start: r.number("start", 64)}
	return r.finish(func() error {
		if frame.Start > s.Address {
			return errors.New("the function starts behind the address")
		}
		if !outer {
			s.Frames = []trace.SymbolFrame{frame}
			p.symbols = append(p.symbols, s)
			return s.Check()
		}
		n := len(p.symbols)
		if n == 0 || p.symbols[n-1].Module != s.Module || p.symbols[n-1].Address != s.Address {
			return errors.New("outer=1 must follow a symbol of the same module and address")
		}
		last := &p.symbols[n-1]
		last.Frames = append(last.Frames, frame)
		return last.Check()
	})
}

// writeSymbols writes the symbols of the lines before.
func (p *parser) writeSymbols() error {
	symbols := p.symbols
	p.symbols = nil
	return p.out.WriteSymbols(symbols)
}

// writeOOM writes the reports that are new.
func (t *writer) writeOOM() {
	source, ok := t.src.(trace.OOMReporter)
	if !ok {
		return
	}
	reports := source.OOMReports()
	for _, report := range reports[t.oom:] {
		t.line = append(t.line, "oomreport"...)
		t.quoted("json", report)
		t.flushLine()
	}
	t.oom = len(reports)
}

func parseOOM(p *parser) error {
	r := argReader{p: p}
	report := r.text("json")
	return r.finish(func() error { return p.out.WriteOOM(report) })
}
