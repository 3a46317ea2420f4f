package textform

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"memtrace/cuda"
	"memtrace/trace"
)

// Error is an error of a text form and its place. Line and Column count from 1; columns are bytes.
type Error struct {
	Line, Column int
	Message      string
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// Encode writes the trace that a text form describes. Without an "end" line the trace is that of a program that was
// killed after its last event. Errors in the text are *Error.
func Encode(w io.Writer, text io.Reader) error {
	out, err := trace.NewWriter(w, trace.WriterOptions{})
	if err != nil {
		return err
	}
	p := parser{out: out}
	lines := bufio.NewReader(text)
	for {
		line, err := lines.ReadString('\n')
		if err != nil && err != io.EOF {
			return fmt.Errorf("read text form: %w", err)
		}
		p.lineNumber++
		if err := p.parseLine(strings.TrimSuffix(line, "\n")); err != nil {
			return err
		}
		if err == io.EOF {
			break
		}
	}
	if p.ended {
		return nil
	}
	return errors.Join(p.writeSymbols(), out.Flush(0))
}

// parser turns lines into calls of a Writer.
type parser struct {
	out        *trace.Writer
	lineNumber int
	ended      bool

	args    []arg          // of the current line
	symbols []trace.Symbol // of the lines before it, not yet written
	event   [1]trace.Event
	value   [1]uint64
}

// arg is a name=value pair and its place.
type arg struct {
	name, value string
	column      int
	quoted      bool
	used        bool
}

func (p *parser) errorAt(column int, format string, args ...any) error {
	return &Error{Line: p.lineNumber, Column: column, Message: fmt.Sprintf(format, args...)}
}

var eventKindByName = func() map[string]trace.EventKind {
	kinds := make(map[string]trace.EventKind)
	for _, spec := range trace.EventSpecs {
		if spec.Kind != trace.EventNone {
			kinds[spec.Name] = spec.Kind
		}
	}
	return kinds
}()

func (p *parser) parseLine(line string) error {
	line = strings.TrimSuffix(line, "\r")
	trimmed := strings.TrimLeft(line, " \t")
	if trimmed == "" || trimmed[0] == '#' {
		return nil
	}
	start := len(line) - len(trimmed) + 1
	word, rest, _ := strings.Cut(trimmed, " ")
	if p.ended {
		return p.errorAt(start, "%q after the end line", word)
	}
	if word != "symbol" {
		if err := p.writeSymbols(); err != nil {
			return err
		}
	}
	if err := p.split(rest, start+len(word)+1); err != nil {
		return err
	}
	if kind, ok := eventKindByName[word]; ok {
		return p.parseEvent(kind, start)
	}
	parse, ok := lineParsers[word]
	if !ok {
		return p.errorAt(start,
			"unknown word %q; a line begins with trace, info, string, stack, code, pystack, symbol, module, thread, device, flush, oomreport, end or the name of an event kind", word)
	}
	if err := parse(p); err != nil {
		return p.located(start, err)
	}
	return nil
}

// located makes an error of the line an Error; an error of the output stays what it is.
func (p *parser) located(column int, err error) error {
	var text *Error
	if errors.As(err, &text) || p.out.Err() != nil {
		return err
	}
	return p.errorAt(column, "%v", err)
}

// split cuts name=value pairs; column is that of the first byte of rest.
func (p *parser) split(rest string, column int) error {
	p.args = p.args[:0]
	for {
		trimmed := strings.TrimLeft(rest, " \t")
		column += len(rest) - len(trimmed)
		if trimmed == "" {
			return nil
		}
		name, value, found := strings.Cut(trimmed, "=")
		if !found || strings.ContainsAny(name, " \t\"") || name == "" {
			return p.errorAt(column, "want name=value")
		}
		for _, a := range p.args {
			if a.name == name {
				return p.errorAt(column, "%q stands twice on the line", name)
			}
		}
		arg := arg{name: name, column: column}
		size := 0
		if strings.HasPrefix(value, `"`) {
			quoted, err := strconv.QuotedPrefix(value)
			if err != nil {
				return p.errorAt(column+len(name)+1, "the quoted text does not end or has a wrong escape")
			}
			arg.quoted, size = true, len(quoted)
			arg.value, err = strconv.Unquote(quoted)
			if err != nil || (size < len(value) && value[size] != ' ' && value[size] != '\t') {
				return p.errorAt(column+len(name)+1, "wrong quoted text")
			}
		} else {
			if size = strings.IndexAny(value, " \t"); size < 0 {
				size = len(value)
			}
			arg.value = value[:size]
		}
		p.args = append(p.args, arg)
		rest = value[size:]
		column += len(name) + 1 + size
	}
}

func (p *parser) parseEvent(kind trace.EventKind, start int) error {
	p.event[0] = trace.Event{Kind: kind}
	for _, a := range p.args {
		f, ok := fieldOf(kind, a.name)
		if !ok {
			return p.errorAt(a.column, "%s has no field %q", kind, a.name)
		}
		v, err := parseFieldText(f, a)
		if err != nil {
			return p.errorAt(a.column, "%s: %v", a.name, err)
		}
		p.value[0] = v
		if !trace.Scatter(p.value[:], f, p.event[:]) {
			return p.errorAt(a.column, "%s: %s is out of range", a.name, a.value)
		}
	}
	if err := p.out.WriteEvents(p.event[:]); err != nil {
		return p.located(start, err)
	}
	return nil
}

func fieldOf(kind trace.EventKind, name string) (f trace.Field, ok bool) {
	for _, f := range trace.EventSpecs[kind].Fields {
		if trace.FieldSpecs[f].Name == name {
			return f, true
		}
	}
	return 0, false
}

// parseFieldText is the inverse of appendFieldText.
func parseFieldText(f trace.Field, a arg) (v uint64, err error) {
	if a.quoted {
		return 0, errors.New("want a number or a name, not a quoted text")
	}
	switch f {
	case trace.FieldAPI, trace.FieldRuntime:
		if api, ok := cuda.ParseAPI(a.value); ok {
			return uint64(api), nil
		}
	case trace.FieldLevel:
		if level, ok := cuda.ParseLevel(a.value); ok {
			return uint64(level), nil
		}
	case trace.FieldMem:
		if mem, ok := cuda.ParseMemoryKind(a.value); ok {
			return uint64(mem), nil
		}
	case trace.FieldObject:
		if object, ok := cuda.ParseObjectKind(a.value); ok {
			return uint64(object), nil
		}
	case trace.FieldCategory:
		if category, ok := trace.ParseCategory(a.value); ok {
			return uint64(category), nil
		}
	}
	if trace.FieldSpecs[f].Signed {
		n, err := strconv.ParseInt(a.value, 0, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is no whole number", a.value)
		}
		return uint64(n), nil
	}
	v, err = strconv.ParseUint(a.value, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is neither a known name nor a whole number", a.value)
	}
	return v, nil
}

// argReader takes values off a line by name; the first error stays.
type argReader struct {
	p   *parser
	err error
}

func (r *argReader) find(name string) (a arg, ok bool) {
	for i := range r.p.args {
		if r.p.args[i].name == name {
			r.p.args[i].used = true
			return r.p.args[i], true
		}
	}
	return arg{}, false
}

func (r *argReader) fail(a arg, format string, args ...any) {
	if r.err == nil {
		r.err = r.p.errorAt(a.column, format, args...)
	}
}

// number returns a value of at most bits bits, 0 if the line does not have it.
func (r *argReader) number(name string, bits int) uint64 {
	a, ok := r.find(name)
	if !ok {
		return 0
	}
	v, err := strconv.ParseUint(a.value, 0, bits)
	if err != nil || a.quoted {
		r.fail(a, "%s: %q is no whole number of %d bits", name, a.value, bits)
	}
	return v
}

func (r *argReader) signed(name string, bits int) int64 {
	a, ok := r.find(name)
	if !ok {
		return 0
	}
	v, err := strconv.ParseInt(a.value, 0, bits)
	if err != nil || a.quoted {
		r.fail(a, "%s: %q is no whole number of %d bits", name, a.value, bits)
	}
	return v
}

func (r *argReader) text(name string) string {
	a, ok := r.find(name)
	if ok && !a.quoted {
		r.fail(a, "%s: want a quoted text", name)
	}
	return a.value
}

func (r *argReader) frames(name string) []uint64 {
	a, ok := r.find(name)
	if !ok || a.value == "" {
		return nil
	}
	parts := strings.Split(a.value, ",")
	frames := make([]uint64, 0, len(parts))
	for _, part := range parts {
		pc, err := strconv.ParseUint(part, 0, 64)
		if err != nil || a.quoted {
			r.fail(a, "%s: %q is no address", name, part)
		}
		frames = append(frames, pc)
	}
	return frames
}

// lineParsers holds what each word but the event kinds does.
var lineParsers = map[string]func(*parser) error{
	"trace": func(p *parser) error {
		r := argReader{p: p}
		version := r.number("version", 32)
		return r.finish(func() error {
			if version < trace.OldestVersion || version > trace.FormatVersion {
				return fmt.Errorf("%w: the text has version %d, this memtrace reads %d to %d", trace.ErrVersion,
					version, trace.OldestVersion, trace.FormatVersion)
			}
			return nil
		})
	},
	"oomreport": parseOOM,
	"pystack":   parsePyStack,
	"code":      parseCode,
	"symbol":    parseSymbol,
	"info": func(p *parser) error {
		r := argReader{p: p}
		info := trace.Info{r.text("key"): r.text("value")}
		return r.finish(func() error { return p.out.WriteInfo(info) })
	},
	"string": func(p *parser) error {
		r := argReader{p: p}
		id, s := trace.StringID(r.number("id", 32)), r.text("value")
		return r.finish(func() error { return p.out.WriteString(id, s) })
	},
	"stack": func(p *parser) error {
		r := argReader{p: p}
		s := trace.Stack{ID: trace.StackID(r.number("id", 32)), Frames: r.frames("frames"), End: r.stackEnd("end")}
		return r.finish(func() error { return p.out.WriteStack(s) })
	},
	"module": func(p *parser) error {
		r := argReader{p: p}
		m := trace.Module{ID: trace.ModuleID(r.number("id", 32)), Start: r.number("start", 64),
			End: r.number("end", 64), Base: r.number("base", 64),
			Path: r.text("path"), BuildID: r.text("buildid"), Size: r.number("size", 64),
			ModTime: r.signed("mtime", 64)}
		return r.finish(func() error { return p.out.WriteModule(m) })
	},
	"thread": func(p *parser) error {
		r := argReader{p: p}
		th := trace.Thread{ID: trace.ThreadID(r.number("id", 32)), TID: int32(r.signed("tid", 32)),
			Name: r.text("name")}
		return r.finish(func() error { return p.out.WriteThread(th) })
	},
	"device": func(p *parser) error {
		r := argReader{p: p}
		d := trace.Device{Index: int16(r.signed("index", 16)), Name: r.text("name"), UUID: r.text("uuid"),
			TotalBytes: r.number("total", 64)}
		return r.finish(func() error { return p.out.WriteDevice(d) })
	},
	"flush": func(p *parser) error {
		r := argReader{p: p}
		watermark := r.number("watermark", 64)
		return r.finish(func() error { return p.out.Flush(watermark) })
	},
	"end": func(p *parser) error {
		r := argReader{p: p}
		end := trace.End{Reason: r.text("reason"), LostRecords: r.number("lost_records", 64),
			LostRings: r.number("lost_rings", 64),
			LostDict:  r.number("lost_dict", 64), EventCount: r.number("events", 64), Time: r.signed("time", 64)}
		p.ended = true
		return r.finish(func() error { return p.out.Close(end) })
	},
}

// finish calls write unless a value of the line was wrong or has a name that the line does not have.
func (r *argReader) finish(write func() error) error {
	if r.err != nil {
		return r.err
	}
	for _, a := range r.p.args {
		if !a.used {
			return r.p.errorAt(a.column, "unknown name %q", a.name)
		}
	}
	return write()
}
