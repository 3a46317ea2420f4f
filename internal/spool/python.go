package spool

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"

	"memtrace/trace"
)

// passPyStack passes a Python stack on. One that is deeper than a trace may hold loses its outer frames.
func passPyStack(out Dictionary, id uint32, b []byte) error {
	if len(b) < 8 {
		return nil
	}
	s := trace.PyStack{ID: trace.StackID(id), End: trace.StackEnd(b[0])}
	b = b[8:]
	n := len(b) / pyFrameSize
	if n > trace.MaxFrames {
		n, s.End = trace.MaxFrames, trace.StackDepth
	}
	s.Frames = make([]trace.PyFrame, n)
	for i := range s.Frames {
		f := b[i*pyFrameSize:]
		where := binary.LittleEndian.Uint32(f[pyFrameWhere:])
		s.Frames[i] = trace.PyFrame{Code: trace.CodeID(binary.LittleEndian.Uint32(f[pyFrameCode:])), Offset: where >> 1,
			Entry: where&1 != 0,
			Self:  binary.LittleEndian.Uint64(f[pyFrameSelf:])}
	}
	return out.WritePyStack(s)
}

// passCode passes a Python code object on. A line table that is longer than a trace may hold is left out.
func passCode(out Dictionary, id uint32, b []byte) error {
	if len(b) < codeSize {
		return nil
	}
	head, rest := b[:codeSize], b[codeSize:]
	whole := true
	cut := func(offset int) []byte {
		n := binary.LittleEndian.Uint32(head[offset:])
		if uint64(n) > uint64(len(rest)) {
			whole = false
			return nil
		}
		part := rest[:n]
		rest = rest[n:]
		return part
	}
	c := trace.Code{
		ID:         trace.CodeID(id),
		Name:       pythonText(cut(codeNameBytes), head[codeNameWidth]),
		QualName:   pythonText(cut(codeQualNameBytes), head[codeQualNameWidth]),
		File:       pythonText(cut(codeFileBytes), head[codeFileWidth]),
		FirstLine:  int32(binary.LittleEndian.Uint32(head[codeFirstLine:])),
		Table:      trace.LineTable(head[codeTable]),
		Lines:      cut(codeTableBytes),
		ModuleCall: head[codeModuleCall] != 0,
	}
	if !whole {
		return nil // only a damaged file has such an entry
	}
	if len(c.Lines) > trace.MaxLineTable {
		c.Table, c.Lines = trace.LinesNone, nil
	}
	return out.WriteCode(c)
}

// pythonText decodes a text as Python keeps it, with 1, 2 or 4 bytes a character. What is not a character (half of a
// pair of surrogates, which Python uses for bytes of file names that are not UTF-8; a number beyond Unicode) becomes
// U+FFFD. A text that is longer than a trace may hold is cut.
func pythonText(b []byte, width uint8) string {
	var unit func(b []byte) rune
	switch width {
	case 1:
		unit = func(b []byte) rune { return rune(b[0]) }
	case 2:
		unit = func(b []byte) rune { return rune(binary.LittleEndian.Uint16(b)) }
	case 4:
		unit = func(b []byte) rune { return rune(min(binary.LittleEndian.Uint32(b), utf8.MaxRune+1)) }
	default:
		if len(b) == 0 {
			return ""
		}
		return string(utf8.RuneError)
	}
	var text strings.Builder
	text.Grow(min(len(b)/int(width), trace.MaxString))
	for ; len(b) >= int(width) && text.Len() <= trace.MaxString-utf8.UTFMax; b = b[width:] {
		text.WriteRune(unit(b)) // writes U+FFFD for invalid characters
	}
	return text.String()
}
