package main

import (
	"maps"

	"memtrace/internal/spool"
	"memtrace/trace"
)

// teeDictionary passes dictionary entries on and keeps them for the texts about running out of memory.
type teeDictionary struct {
	spool.Dictionary
	tables *trace.Tables
	info   trace.Info
}

// dictionary is where the cursor's dictionary entries go.
func (d *drainer) dictionary() spool.Dictionary {
	var to spool.Dictionary = pythonDictionary{d.writer, d.packages}
	if d.symbols != nil {
		to = codeDictionary{to, d.symbols}
	}
	if d.oom != nil {
		to = teeDictionary{to, d.oom.tables, d.oom.info}
	}
	return to
}

func (t teeDictionary) WriteInfo(info trace.Info) error {
	maps.Copy(t.info, info)
	return t.Dictionary.WriteInfo(info)
}

func (t teeDictionary) WriteString(id trace.StringID, s string) error {
	t.tables.AddString(id, s)
	return t.Dictionary.WriteString(id, s)
}

func (t teeDictionary) WriteStack(s trace.Stack) error {
	t.tables.AddStack(s)
	return t.Dictionary.WriteStack(s)
}

func (t teeDictionary) WritePyStack(s trace.PyStack) error {
	t.tables.AddPyStack(s)
	return t.Dictionary.WritePyStack(s)
}

func (t teeDictionary) WriteCode(c trace.Code) error {
	t.tables.AddCode(c)
	return t.Dictionary.WriteCode(c)
}

func (t teeDictionary) WriteModule(m trace.Module) error {
	t.tables.AddModule(m)
	return t.Dictionary.WriteModule(m)
}

func (t teeDictionary) WriteThread(th trace.Thread) error {
	t.tables.AddThread(th)
	return t.Dictionary.WriteThread(th)
}

func (t teeDictionary) WriteDevice(v trace.Device) error {
	t.tables.AddDevice(v)
	return t.Dictionary.WriteDevice(v)
}
