package exportcmd

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"memtrace/analyzer"
	"memtrace/internal/cli"
	"memtrace/internal/export"
	"memtrace/internal/top"
	"memtrace/internal/tracefile"
)

// PushTokenEnv holds a token for the server. It must not be on a command line: every process of the machine can read
// it.
const PushTokenEnv = "MEMTRACE_PUSH_TOKEN"

// PushTypes are the values of the profile's samples, as export.Pprof writes them.
var PushTypes = []PyroscopeSampleType{
	{Name: "alloc_objects", Unit: "count"}, {Name: "alloc_space", Unit: "bytes"},
	{Name: "inuse_objects", Unit: "count", Average: true}, {Name: "inuse_space", Unit: "bytes", Average: true},
	{Name: "peak_space", Unit: "bytes", Average: true},
}

// pushFlags hold where a profile is sent, and under which labels.
type pushFlags struct {
	url             string
	labels, headers []string
}

func (p *pushFlags) enabled() bool { return p.url != "" }

func (p *pushFlags) define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.url, "push", "",
		"send the pprof profile to the Pyroscope at `URL`, with the token in "+PushTokenEnv)
	f.StringArrayVar(&p.labels, "push-label", nil,
		"add this `LABEL`, NAME=VALUE; service_name is the program's name (repeatable)")
	f.StringArrayVar(&p.headers, "push-header", nil,
		"add this HTTP `HEADER`, such as 'X-Scope-OrgID: team' (repeatable)")
	for _, name := range []string{"push", "push-label", "push-header"} {
		cli.CompleteFlag(cmd, name, cli.CompleteValues())
	}
}

var (
	pushLabelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	pushHeaderName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
)

// target checks the flags; nil if nothing is to be sent.
func (p *pushFlags) target(format *Format, output string) (*PyroscopeTarget, error) {
	if !p.enabled() {
		if len(p.labels)+len(p.headers) > 0 {
			return nil, cli.UsageErrorf("--push-label and --push-header: name a server with --push")
		}
		return nil, nil
	}
	if format.Name != "pprof" {
		return nil, cli.UsageErrorf("--push with %s: servers take pprof's profiles; leave out the format", format.Name)
	}
	if output != "" {
		return nil, cli.UsageErrorf("--push with -o: choose one")
	}
	target, err := ParsePyroscopeTarget(p.url)
	if err != nil {
		return nil, cli.UsageErrorf("--push: %w; such as http://localhost:4040", err)
	}
	for _, text := range p.labels {
		if name, value, found := strings.Cut(text, "="); !found || value == "" || !pushLabelName.MatchString(name) ||
			strings.HasPrefix(name, "__") {
			return nil, cli.UsageErrorf("--push-label %s: give it as NAME=VALUE, such as team=vision", text)
		}
	}
	for _, text := range p.headers {
		name, value, found := strings.Cut(text, ":")
		if value = strings.TrimSpace(value); !found || !pushHeaderName.MatchString(name) ||
			strings.ContainsAny(value, "\r\n\x00") {
			return nil, cli.UsageErrorf("--push-header %s: give it as 'NAME: VALUE'", name)
		}
		target.Header(name, value)
	}
	if token := strings.TrimSpace(os.Getenv(PushTokenEnv)); token != "" {
		target.Header("Authorization", "Bearer "+token)
	}
	return target, nil
}

// push sends what export writes for pprof.
func (e *Exporter) push(ctx context.Context, target *PyroscopeTarget, path string, flags *pushFlags,
	set *analyzer.StackSet, o export.Options) error {
	began, err := time.Parse(time.RFC3339Nano, set.Process.Started)
	if err != nil {
		began = time.Now().Add(-time.Duration(set.Process.DurationNS)) // unknown in an imported snapshot
	}
	p := &PyroscopeProfile{Service: top.ProgramName(strings.Join(set.Process.Args, " ")), From: began,
		Until: began.Add(time.Duration(set.Process.DurationNS)), Types: PushTypes,
		Labels: map[string]string{"host": set.Process.Host, "pod": set.Process.Pod,
			"rank": top.RankText(set.Process.Rank), "level": set.Level}}
	if set.Process.PID > 0 {
		p.Labels["process_pid"] = strconv.FormatInt(set.Process.PID, 10)
	}
	if p.Service == "" {
		p.Service = strings.TrimSuffix(filepath.Base(path), tracefile.Suffix)
	}
	for _, text := range flags.labels {
		name, value, _ := strings.Cut(text, "=")
		if p.Labels[name] = value; name == "service_name" {
			p.Service = value
			delete(p.Labels, name)
		}
	}
	// A profile's time is when it was complete: servers refuse what is old, and of a run of days that would be its
	// beginning.
	dated := *set
	dated.Process.Started = p.Until.UTC().Format(time.RFC3339Nano)
	var profile bytes.Buffer
	if err := export.Pprof(&profile, &dated, o); err != nil {
		return err
	}
	p.Pprof = profile.Bytes()
	e.WarnStacks(path, []*analyzer.StackSet{set}, o)
	if err := target.Push(ctx, p); err != nil {
		return err
	}
	if !e.Quiet {
		e.Say("sent %d bytes to %s as %s, %s %s", len(p.Pprof), target, p.Service, o.Value.Text(o.Value.Sum(set)),
			o.Value.Words(set))
	}
	return nil
}
