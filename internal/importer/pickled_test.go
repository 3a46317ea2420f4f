package importer

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
)

// with is a dictionary of a pickle as keys and values in turn.
type with []any

// items are a list of one.
type items []any

// pickled writes a value as a pickle of protocol 2.
func pickled(v any) []byte { return append(pickle([]byte("\x80\x02"), v), '.') }

func pickle(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, 'N')
	case int:
		if int64(int32(v)) == int64(v) {
			return binary.LittleEndian.AppendUint32(append(b, 'J'), uint32(v))
		}
		return binary.LittleEndian.AppendUint64(append(b, 0x8a, 8), uint64(v))
	case float64:
		return binary.BigEndian.AppendUint64(append(b, 'G'), math.Float64bits(v))
	case bool:
		return append(b, map[bool]byte{false: 0x89, true: 0x88}[v])
	case string:
		return append(binary.LittleEndian.AppendUint32(append(b, 'X'), uint32(len(v))), v...)
	case items:
		b = append(b, ']', '(')
		for _, item := range v {
			b = pickle(b, item)
		}
		return append(b, 'e')
	case with:
		b = append(b, '}', '(')
		for _, item := range v {
			b = pickle(b, item)
		}
		return append(b, 'u')
	}
	panic("a value of another kind")
}

// inJSON writes a value as JSON.
func inJSON(v any) string {
	var b strings.Builder
	switch v := v.(type) {
	case items:
		b.WriteByte('[')
		for i, item := range v {
			b.WriteString(map[bool]string{true: ", "}[i > 0] + inJSON(item))
		}
		b.WriteByte(']')
	case with:
		b.WriteByte('{')
		for i := 0; i < len(v); i += 2 {
			b.WriteString(map[bool]string{true: ", "}[i > 0] + inJSON(v[i]) + ": " + inJSON(v[i+1]))
		}
		b.WriteByte('}')
	default:
		text, _ := json.Marshal(v)
		b.Write(text)
	}
	return b.String()
}

const (
	base = 0x7f0000000000
	mib  = 1 << 20
)

// snap is a snapshot of segments and of the history of one device.
func snap(segments items, history ...any) with {
	return with{"segments", segments, "device_traces", items{items(history)}}
}

func seg(addr, size int, kind string, blocks ...any) with {
	return with{"device", 0, "address", addr, "total_size", size, "stream", 0, "segment_type", kind, "is_expandable",
		false,
		"blocks", items(blocks)}
}

func blk(addr, size, requested int, state string) with {
	return with{"address", addr, "size", size, "requested_size", requested, "state", state, "frames", items{}}
}

func rec(action string, addr, size, time int) with {
	return with{"action", action, "addr", addr, "size", size, "stream", 0, "time_us", time, "frames", items{}}
}

// replaced is a dictionary with another value of a key, or without the key.
func replaced(w with, key string, value any) (changed with) {
	for i := 0; i < len(w); i += 2 {
		switch {
		case w[i] != key:
			changed = append(changed, w[i], w[i+1])
		case value != nil:
			changed = append(changed, key, value)
		}
	}
	return changed
}
