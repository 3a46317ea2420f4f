package trace_test

import (
	"memtrace/internal/textform"
	"memtrace/trace"
)

func init() {
	trace.WriteText, trace.EncodeText = textform.Write, textform.Encode
}
