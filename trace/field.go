package trace

import "memtrace/cuda"

// gather copies one field of all events into values, which is as long as events. Signed fields become two's complement.
func gather(values []uint64, f Field, events []Event) {
	values = values[:len(events)]
	switch f {
	case FieldSeq:
		for i := range events {
			values[i] = events[i].Seq
		}
	case FieldTime:
		for i := range events {
			values[i] = uint64(events[i].Time)
		}
	case FieldThread:
		for i := range events {
			values[i] = uint64(events[i].Thread)
		}
	case FieldLevel:
		for i := range events {
			values[i] = uint64(events[i].Level)
		}
	case FieldAPI:
		for i := range events {
			values[i] = uint64(events[i].API)
		}
	case FieldRuntime:
		for i := range events {
			values[i] = uint64(events[i].Runtime)
		}
	case FieldMem:
		for i := range events {
			values[i] = uint64(events[i].Mem)
		}
	case FieldDevice:
		for i := range events {
			values[i] = uint64(events[i].Device)
		}
	case FieldAddr:
		for i := range events {
			values[i] = events[i].Addr
		}
	case FieldSize:
		for i := range events {
			values[i] = events[i].Size
		}
	case FieldStream:
		for i := range events {
			values[i] = events[i].Stream
		}
	case FieldStatus:
		for i := range events {
			values[i] = uint64(events[i].Status)
		}
	case FieldFlags:
		for i := range events {
			values[i] = uint64(events[i].Flags)
		}
	default:
		gatherMore(values, f, events)
	}
}

func gatherMore(values []uint64, f Field, events []Event) {
	switch f {
	case FieldStack:
		for i := range events {
			values[i] = uint64(events[i].Stack)
		}
	case FieldPyStack:
		for i := range events {
			values[i] = uint64(events[i].PyStack)
		}
	case FieldTag:
		for i := range events {
			values[i] = uint64(events[i].Tag)
		}
	case FieldAllocated:
		for i := range events {
			values[i] = events[i].Allocated
		}
	case FieldReserved:
		for i := range events {
			values[i] = events[i].Reserved
		}
	case FieldHandle:
		for i := range events {
			values[i] = events[i].Handle
		}
	case FieldName:
		for i := range events {
			values[i] = uint64(events[i].Name)
		}
	case FieldCount:
		for i := range events {
			values[i] = events[i].Count
		}
	case FieldObject:
		for i := range events {
			values[i] = uint64(events[i].Object)
		}
	case FieldCategory:
		for i := range events {
			values[i] = uint64(events[i].Category)
		}
	case FieldOp:
		for i := range events {
			values[i] = uint64(events[i].Op)
		}
	case FieldOpThread:
		for i := range events {
			values[i] = uint64(events[i].OpThread)
		}
	case FieldRest:
		for i := range events {
			values[i] = events[i].Rest
		}
	case FieldPool:
		for i := range events {
			values[i] = uint64(events[i].Pool)
		}
	}
}

// constantFields returns those of the slow-moving fields whose value is the same in all events. One pass over the
// events is cheaper than a column of equal values for each of these fields.
func constantFields(events []Event) (set uint64) {
	first := &events[0]
	var thread ThreadID
	var tag StringID
	var stream, handle uint64
	var status int32
	var api, runtime cuda.API
	var device int16
	var level cuda.Level
	var mem cuda.MemoryKind
	var flags Flags
	var opThread uint16
	var rest uint64
	var pool uint32
	for i := range events {
		ev := &events[i]
		thread |= ev.Thread ^ first.Thread
		tag |= ev.Tag ^ first.Tag
		stream |= ev.Stream ^ first.Stream
		handle |= ev.Handle ^ first.Handle
		status |= ev.Status ^ first.Status
		api |= ev.API ^ first.API
		runtime |= ev.Runtime ^ first.Runtime
		device |= ev.Device ^ first.Device
		level |= ev.Level ^ first.Level
		mem |= ev.Mem ^ first.Mem
		flags |= ev.Flags ^ first.Flags
		opThread |= ev.OpThread ^ first.OpThread
		rest |= ev.Rest ^ first.Rest
		pool |= ev.Pool ^ first.Pool
	}
	for _, c := range [...]struct {
		field   Field
		differs bool
	}{{FieldThread, thread != 0}, {FieldTag, tag != 0}, {FieldStream, stream != 0}, {FieldStatus, status != 0},
		{FieldAPI, api != 0},
		{FieldRuntime, runtime != 0}, {FieldDevice, device != 0}, {FieldLevel, level != 0}, {FieldMem, mem != 0},
		{FieldFlags, flags != 0},
		{FieldHandle, handle != 0}, {FieldOpThread, opThread != 0}, {FieldRest, rest != 0}, {FieldPool, pool != 0}} {
		if !c.differs {
			set |= 1 << c.field
		}
	}
	return set
}

// scatter copies values into one field of the events and reports whether every value fits the field.
func scatter(values []uint64, f Field, events []Event) (fits bool) {
	values = values[:len(events)]
	var seen uint64 // all bits that occur, to find a value that is too wide without a branch per value
	switch f {
	case FieldSeq:
		for i := range events {
			events[i].Seq = values[i]
		}
	case FieldTime:
		for i := range events {
			events[i].Time = int64(values[i])
		}
	case FieldThread:
		for i := range events {
			seen |= values[i]
			events[i].Thread = ThreadID(values[i])
		}
		return seen>>32 == 0
	case FieldLevel:
		for i := range events {
			seen |= values[i]
			events[i].Level = cuda.Level(values[i])
		}
		return seen>>8 == 0
	case FieldAPI:
		for i := range events {
			seen |= values[i]
			events[i].API = cuda.API(values[i])
		}
		return seen>>16 == 0
	case FieldRuntime:
		for i := range events {
			seen |= values[i]
			events[i].Runtime = cuda.API(values[i])
		}
		return seen>>16 == 0
	case FieldMem:
		for i := range events {
			seen |= values[i]
			events[i].Mem = cuda.MemoryKind(values[i])
		}
		return seen>>8 == 0
	case FieldDevice:
		for i := range events {
			events[i].Device = int16(values[i])
			seen |= values[i] ^ uint64(events[i].Device)
		}
		return seen == 0
	case FieldAddr:
		for i := range events {
			events[i].Addr = values[i]
		}
	case FieldSize:
		for i := range events {
			events[i].Size = values[i]
		}
	default:
		return scatterMore(values, f, events)
	}
	return true
}

func scatterMore(values []uint64, f Field, events []Event) (fits bool) {
	var seen uint64
	switch f {
	case FieldStream:
		for i := range events {
			events[i].Stream = values[i]
		}
	case FieldStatus:
		for i := range events {
			events[i].Status = int32(values[i])
			seen |= values[i] ^ uint64(events[i].Status)
		}
		return seen == 0
	case FieldFlags:
		for i := range events {
			seen |= values[i]
			events[i].Flags = Flags(values[i])
		}
		return seen>>8 == 0
	case FieldStack:
		for i := range events {
			seen |= values[i]
			events[i].Stack = StackID(values[i])
		}
		return seen>>32 == 0
	case FieldPyStack:
		for i := range events {
			seen |= values[i]
			events[i].PyStack = StackID(values[i])
		}
		return seen>>32 == 0
	case FieldTag:
		for i := range events {
			seen |= values[i]
			events[i].Tag = StringID(values[i])
		}
		return seen>>32 == 0
	case FieldAllocated:
		for i := range events {
			events[i].Allocated = values[i]
		}
	case FieldReserved:
		for i := range events {
			events[i].Reserved = values[i]
		}
	case FieldHandle:
		for i := range events {
			events[i].Handle = values[i]
		}
	case FieldName:
		for i := range events {
			seen |= values[i]
			events[i].Name = StringID(values[i])
		}
		return seen>>32 == 0
	case FieldCount:
		for i := range events {
			events[i].Count = values[i]
		}
	case FieldObject:
		for i := range events {
			seen |= values[i]
			events[i].Object = cuda.ObjectKind(values[i])
		}
		return seen>>8 == 0
	case FieldCategory:
		for i := range events {
			seen |= values[i]
			events[i].Category = Category(values[i])
		}
		return seen>>8 == 0
	case FieldOp:
		for i := range events {
			seen |= values[i]
			events[i].Op = uint32(values[i])
		}
		return seen>>32 == 0
	case FieldOpThread:
		for i := range events {
			seen |= values[i]
			events[i].OpThread = uint16(values[i])
		}
		return seen>>16 == 0
	case FieldRest:
		for i := range events {
			events[i].Rest = values[i]
		}
	case FieldPool:
		for i := range events {
			seen |= values[i]
			events[i].Pool = uint32(values[i])
		}
		return seen>>32 == 0
	}
	return true
}

// fieldBits is how many bits the values of a field have; 0: all 64.
var fieldBits = [fieldCount]uint8{FieldThread: 32, FieldLevel: 8, FieldAPI: 16, FieldRuntime: 16, FieldMem: 8,
	FieldDevice: 16, FieldStatus: 32, FieldFlags: 8,
	FieldStack: 32, FieldPyStack: 32, FieldTag: 32, FieldName: 32, FieldObject: 8, FieldCategory: 8, FieldOp: 32,
	FieldOpThread: 16, FieldPool: 32}

// fitsField reports whether a value fits a field.
func fitsField(f Field, v uint64) bool {
	switch n := fieldBits[f]; {
	case n == 0:
		return true
	case f == FieldDevice || f == FieldStatus:
		return uint64(int64(v)<<(64-n)>>(64-n)) == v
	default:
		return v>>n == 0
	}
}

// allFit reports whether every value fits the field.
func allFit(f Field, values []uint64) bool {
	if fieldBits[f] == 0 {
		return true
	}
	if f == FieldDevice || f == FieldStatus {
		for _, v := range values {
			if !fitsField(f, v) {
				return false
			}
		}
		return true
	}
	var seen uint64 // all bits that occur: no branch per value
	for _, v := range values {
		seen |= v
	}
	return fitsField(f, seen)
}
