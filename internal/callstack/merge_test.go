package callstack

import (
	"fmt"
	"strings"
	"testing"

	"memtrace/internal/symbol"
	"memtrace/trace"
)

// nativeStack parses a native stack: "eval" is an activation of the interpreter's loop, "a<b" is a inlined into b.
func nativeStack(text string) []nativeCall {
	var calls []nativeCall
	for _, word := range strings.Fields(text) {
		var call nativeCall
		for _, name := range strings.Split(word, "<") {
			kind := symbol.Native
			if name == "eval" || strings.HasSuffix(word, "<eval") {
				kind = symbol.Interpreter
			}
			call = append(call, &Frame{Frame: symbol.Frame{Kind: kind, Function: name}})
		}
		calls = append(calls, call)
	}
	return calls
}

// pythonStack parses a Python stack; a star marks frames through which C code entered the interpreter.
func pythonStack(text string) []*Frame {
	var frames []*Frame
	for _, word := range strings.Fields(text) {
		name, entry := strings.CutSuffix(word, "*")
		frames = append(frames, &Frame{Frame: symbol.Frame{Kind: symbol.Python, Function: name, Entry: entry}})
	}
	return frames
}

// frameNames writes Python functions with a dot before them.
func frameNames(frames []*Frame) string {
	var names []string
	for _, f := range frames {
		name := f.Function
		if f.Kind == symbol.Python {
			name = "." + name
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func TestMergeStacks(t *testing.T) {
	for _, test := range []struct {
		name           string
		native, python string
		end            trace.StackEnd
		want           string
	}{
		{"neither", "", "", trace.StackWhole, ""},
		{"no Python", "malloc op worker start", "", trace.StackWhole, "malloc op worker start"},
		{"no native", "", "inner outer*", trace.StackWhole, ".inner .outer"},
		{"only the caller", "op", "inner outer*", trace.StackCaller, "op .inner .outer"},

		{"cut", "malloc op call eval", "inner outer module*", trace.StackInterpreter,
			"malloc op call .inner .outer .module"},
		{"cut, several entries", "op eval", "inner* middle outer*", trace.StackInterpreter, "op .inner .middle .outer"},
		{"cut at once", "eval", "inner*", trace.StackInterpreter, ".inner"},
		{"cut where something was inlined", "op opcode<eval", "inner*", trace.StackInterpreter, "op .inner"},
		{"cut, Python is missing", "op call eval", "", trace.StackInterpreter, "op call eval"},
		{"cut, the loop is not known as such", "op loop", "inner*", trace.StackInterpreter, "op .inner"},

		{"3.8 to 3.10: every Python call enters", "op call eval vectorcall eval vectorcall eval run main", "a* b* c*",
			trace.StackWhole,
			"op call .a vectorcall .b vectorcall .c run main"},
		{"3.11 on: Python calls share an activation", "op call eval run main", "a b c*", trace.StackWhole,
			"op call .a .b .c run main"},
		{"recursion through C", "op call eval key_function list_sort sorted eval run main", "key* inner outer*",
			trace.StackWhole,
			"op call .key key_function list_sort sorted .inner .outer run main"},
		{"recursion through C, 3.10", "op eval list_sort eval vectorcall eval main", "key* inner* outer*",
			trace.StackWhole,
			"op .key list_sort .inner vectorcall .outer main"},
		{"a generator is entered from C", "op eval gen_send next eval main", "generator* consumer module*",
			trace.StackWhole,
			"op .generator gen_send next .consumer .module main"},
		{"a generator is resumed by the loop itself", "op eval main", "generator consumer module*", trace.StackWhole,
			"op .generator .consumer .module main"},
		{"two activations beside each other", "op eval eval main", "a* b*", trace.StackWhole, "op .a .b main"},
		{"inlined functions of the loop go with it", "op opcode<eval main", "a*", trace.StackWhole, "op .a main"},

		{"the native stack ends early", "op call eval sort", "key* inner outer*", trace.StackDepth,
			"op call .key sort .inner .outer"},
		{"before the first activation", "op call", "inner outer*", trace.StackDepth, "op call .inner .outer"},
		{"the Python stack ends early", "op eval sort eval run eval main", "a b*", trace.StackWhole,
			"op .a .b sort eval run eval main"},
		{"inside of an activation", "op eval sort eval main", "a* b", trace.StackWhole, "op .a sort .b main"},
		{"no entry is known", "op eval sort eval main", "a b c", trace.StackWhole, "op .a .b .c sort eval main"},
	} {
		native := nativeStack(test.native)
		got := frameNames(mergeStacks(native, test.end == trace.StackInterpreter, pythonStack(test.python)))
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestMergeKeepsEveryFrame: for any two stacks, the result contains every Python frame in order, and lacks only native
// activations, at most as many as there are entries.
func TestMergeKeepsEveryFrame(t *testing.T) {
	for bits := range 1 << 10 {
		var native, python []string
		for i := range 5 {
			native = append(native, []string{fmt.Sprintf("n%d", i), "eval"}[bits>>i&1])
		}
		for i := range bits % 5 {
			python = append(python, fmt.Sprintf("p%d", i)+[]string{"", "*"}[bits>>(5+i)&1])
		}
		merged := mergeStacks(nativeStack(strings.Join(native, " ")), false, pythonStack(strings.Join(python, " ")))
		var gotPython, gotNative []string
		for _, f := range merged {
			if f.Kind == symbol.Python {
				gotPython = append(gotPython, f.Function)
			} else if f.Kind == symbol.Native {
				gotNative = append(gotNative, f.Function)
			}
		}
		wantPython := strings.ReplaceAll(strings.Join(python, " "), "*", "")
		wantNative := strings.Join(strings.Fields(strings.ReplaceAll(strings.Join(native, " "), "eval", "")), " ")
		if strings.Join(gotPython, " ") != wantPython || strings.Join(gotNative, " ") != wantNative {
			t.Fatalf("%v and %v became %s", native, python, frameNames(merged))
		}
		loops := strings.Count(strings.Join(native, " "), "eval")
		left := len(merged) - len(gotPython) - len(gotNative)
		runs := strings.Count(strings.Join(python, " "), "*")
		if len(python) > 0 && !strings.HasSuffix(python[len(python)-1], "*") {
			runs++ // the last frames end without an entry
		}
		if want := loops - min(loops, runs); left != want {
			t.Fatalf("%v and %v became %s: %d activations are left, want %d", native, python, frameNames(merged),
				left, want)
		}
	}
}
