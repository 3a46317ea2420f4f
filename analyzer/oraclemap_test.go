package analyzer

import (
	"slices"

	"memtrace/cuda"
	"memtrace/trace"
)

func (o *oracle) mapHandle(e trace.Event) {
	if e.Status != 0 {
		return
	}
	for _, m := range o.mappings {
		if m.e.Addr == e.Addr && m.e.Seq > e.Seq {
			return
		}
		if m.e.Addr == e.Addr {
			if !oracleKeyed(e.Addr) {
				o.s.Health.DisplacedBlocks++
			}
			o.endMapping(m, e)
		}
	}
	handle := o.find(trace.Event{Level: cuda.LevelDriver, Mem: cuda.MemoryVMM, Addr: e.Handle})
	if handle != nil {
		handle.mapped++
		if handle.unsized {
			handle.unsized, handle.e.Size, handle.e.Flags = false, e.Size, e.Flags
			o.countAlloc(handle.e, handle.account)
		}
	} else {
		o.s.Health.UnmatchedMaps++
	}
	o.mappings = append(o.mappings, oracleMapping{e, handle})
}

func (o *oracle) endMapping(m oracleMapping, e trace.Event) {
	if m.e.Seq > e.Seq {
		o.s.Health.LateFrees++
		return
	}
	o.mappings = slices.DeleteFunc(o.mappings, func(x oracleMapping) bool { return x.e.Seq == m.e.Seq })
	if m.b != nil {
		if m.b.mapped--; m.b.released && m.b.mapped == 0 {
			o.close(m.b, e)
		}
	}
}

// unmap ends every mapping in the range; all of the generator's mappings are 2 MiB long.
func (o *oracle) unmap(e trace.Event) {
	if e.Status != 0 {
		return
	}
	holes := false
	for addr := e.Addr; addr < e.Addr+e.Size; addr += 2 << 20 {
		hole := !slices.ContainsFunc(o.mappings, func(m oracleMapping) bool { return m.e.Addr == addr })
		if hole && oracleKeyed(addr) { // tiles may be unmapped that never were mapped
			e.Size = addr - e.Addr
		}
		holes = holes || hole && !oracleKeyed(addr)
	}
	if holes {
		o.s.Health.UnmatchedMaps++
	}
	for _, m := range slices.Clone(o.mappings) {
		if m.e.Addr >= e.Addr && m.e.Addr < e.Addr+e.Size {
			o.endMapping(m, e)
		}
	}
}

// oracleKeyed reports whether the upper bit says that the place is a key instead of an address.
func oracleKeyed(addr uint64) bool { return int64(addr) < 0 }
