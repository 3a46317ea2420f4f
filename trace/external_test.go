package trace_test

import (
	"memtrace/trace"
	"memtrace/trace/textform"
)

func init() {
	trace.WriteText, trace.EncodeText = textform.Write, textform.Encode
}
