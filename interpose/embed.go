package main

import (
	"fmt"
	"maps"
	"time"

	"memtrace/internal/spool"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// symbolEmbedder keeps of the dictionary what it takes to name code addresses at the end.
type symbolEmbedder struct {
	tables *trace.Tables
	info   trace.Info
	time   time.Duration // that they may take; C waits for the drainer longer (cshim/process/recorder.c)
}

func newSymbolEmbedder(info trace.Info, time time.Duration) *symbolEmbedder {
	return &symbolEmbedder{tables: &trace.Tables{}, info: info, time: time}
}

// codeDictionary passes dictionary entries on and keeps native stacks and modules.
type codeDictionary struct {
	spool.Dictionary
	keep *symbolEmbedder
}

func (c codeDictionary) WriteInfo(info trace.Info) error {
	maps.Copy(c.keep.info, info)
	return c.Dictionary.WriteInfo(info)
}

func (c codeDictionary) WriteStack(s trace.Stack) error {
	c.keep.tables.AddStack(s)
	return c.Dictionary.WriteStack(s)
}

func (c codeDictionary) WriteModule(m trace.Module) error {
	c.keep.tables.AddModule(m)
	return c.Dictionary.WriteModule(m)
}

// embedSymbols writes what the code addresses of all stacks are called. Only a failure to write is returned: a trace
// without names is a whole one.
func (d *drainer) embedSymbols() error {
	if d.symbols == nil {
		return nil
	}
	symbols, err := d.symbols.collect()
	if err != nil {
		d.log.Warn().Msg(err.Error() + "; 'memtrace embed' adds them afterwards")
	}
	if err := d.writer.WriteSymbols(symbols); err != nil {
		return fmt.Errorf("write the names of functions: %w", err)
	}
	return nil
}

func (s *symbolEmbedder) collect() (symbols []trace.Symbol, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			symbols, err = nil, fmt.Errorf("the trace has no names of functions, internal fault: %v", fault)
		}
	}()
	end := time.Now().Add(s.time)
	symbols, whole := symbol.CollectInside(s.tables, s.info, func() bool { return time.Now().After(end) })
	if !whole {
		err = fmt.Errorf("the trace has only a part of the names of functions: %v were not enough", s.time)
	}
	return symbols, err
}
