package metrics

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Format is a text format.
type Format uint8

// The formats.
const (
	Classic     Format = iota // Prometheus's own, which node_exporter's textfile collector reads
	OpenMetrics               // version 1.0.0
)

// ContentType is the value of the header of that name.
func (f Format) ContentType() string {
	if f == OpenMetrics {
		return "application/openmetrics-text; version=1.0.0; charset=utf-8"
	}
	return "text/plain; version=0.0.4; charset=utf-8"
}

var typeNames = [...]string{Gauge: "gauge", Counter: "counter", Info: "info"}

// Write writes families that have samples. An error is the writer's, or that of Check.
func Write(w io.Writer, families []*Family, format Format) error {
	if err := Check(families); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	for _, f := range families {
		if len(f.Samples) > 0 {
			writeFamily(out, f, format)
		}
	}
	if format == OpenMetrics {
		out.WriteString("# EOF\n")
	}
	return out.Flush()
}

func writeFamily(out *bufio.Writer, f *Family, format Format) {
	name, kind := f.Name, typeNames[f.Type]
	if format == Classic { // names a family as its samples are named, and has neither units nor infos
		name = f.sampleName()
		if f.Type == Info {
			kind = "gauge"
		}
	}
	fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, escapeHelp(f.Help, format), name, kind)
	if f.Unit != "" && format == OpenMetrics {
		fmt.Fprintf(out, "# UNIT %s %s\n", name, f.Unit)
	}
	for _, s := range f.Samples {
		out.WriteString(f.sampleName())
		for i, l := range s.Labels {
			separator := byte(',')
			if i == 0 {
				separator = '{'
			}
			out.WriteByte(separator)
			out.WriteString(l.Name + `="` + escapeLabel.Replace(l.Value) + `"`)
		}
		if len(s.Labels) > 0 {
			out.WriteByte('}')
		}
		out.WriteString(" " + formatValue(s.Value) + "\n")
	}
}

var (
	escapeLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	escapeLine  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

// escapeHelp escapes quotes too for OpenMetrics: its help texts have the rules of its labels.
func escapeHelp(text string, format Format) string {
	if format == OpenMetrics {
		return escapeLabel.Replace(text)
	}
	return escapeLine.Replace(text)
}

// exactIntegers is up to where a float64 holds every integer.
const exactIntegers = 1 << 53

func formatValue(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	case math.IsNaN(v):
		return "NaN"
	case v == math.Trunc(v) && math.Abs(v) < exactIntegers:
		return strconv.FormatInt(int64(v), 10)
	}
	if size := math.Abs(v); size > 1e-6 && size < exactIntegers {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
