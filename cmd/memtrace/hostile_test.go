package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"memtrace/internal/textform"
)

// evil is a text that controls terminals, as a quoted Go string: a title, a cleared screen, colours in seven bits and
// in eight, marks of direction, a forged line, and bytes that are not text.
const evil = `\x1b]0;pwned\x07\x1b[2J\x1b[31m\u202e\u2066\u200e\u009b31m\u0085<script>&\"'\r\nforged: line\x00\x7f\xff`

// evilTrace is a trace whose every text is evil.
const evilTrace = `trace version=1
info key="process.pid" value="4711"
info key="process.command" value="EVIL"
info key="process.exe" value="EVIL"
info key="process.host" value="EVIL"
info key="process.cwd" value="EVIL"
info key="process.ended" value="EVIL"
info key="torch.version" value="EVIL"
info key="cuda.driver_version" value="EVIL"
info key="framework.torch" value="EVIL"
info key="nvml" value="EVIL"
info key="nvml.device0" value="EVIL"
info key="drain" value="EVIL"
info key="adapter.torch" value="EVIL"
info key="adapter.torch.trouble" value="EVIL"
info key="unhooked.EVIL" value="EVIL"
info key="EVIL" value="EVIL"
string id=3 value="EVIL"
string id=4 value="EVIL"
stack id=5 frames=0x7f0000001234,0x401020 end=interpreter
code id=6 name="EVIL" qualname="EVIL" file="/EVIL" line=10
pystack id=7 frames=6+34,6+12* end=depth
module id=1 start=0x400000 end=0x500000 base=0x400000 path="/tmp/EVIL" buildid="ab12"
module id=2 start=0x7f0000000000 end=0x7f0000100000 base=0x7f0000000000 path="/usr/lib/libc10_cuda.soEVIL" buildid="../../EVIL"
symbol module=1 address=0x401020 function="EVIL" file="EVIL" line=7
thread id=1 tid=4711 name="EVIL"
device index=0 name="EVIL" uuid="EVIL" total=85899345920
alloc seq=1 time=1200 thread=1 level=driver api=cuMemAlloc_v2 mem=device addr=0x7f5a40000000 size=20971520 stack=5 pystack=7 tag=3
alloc seq=2 time=1300 thread=1 level=framework api=1 mem=device addr=0x7f5a40000000 size=1048576 stack=5 pystack=7 tag=3
mark seq=3 time=1400 thread=1 tag=3 name=4
name seq=4 time=1500 thread=1 addr=0x7f5a40000000 size=100 category=1 name=4
alloc seq=5 time=1600 thread=1 level=driver api=cuMemAlloc_v2 mem=device size=990971520000 status=2 stack=5 pystack=7 tag=3
oom seq=6 time=1700 thread=1 level=framework size=99097152000 stack=5 pystack=7 tag=3
flush watermark=7
end reason="EVIL" lost_records=3 lost_rings=0 lost_dict=0 events=6 time=5000
`

const evilRules = "name = \"x\"\n[[rule]]\ncategory = \"EVIL\"\nlibrary = \"nothing\"\n[[rule]]\ncategory = \"EVIL\"\n"

// evilRun acts as a recorded program: it leaves the trace that it is given, and prints that.
const evilRun = `cp "$1" "$2"; printf '%s\n' "$2" > "$MEMTRACE_RUN_DIR/$$.0"; kill -9 $$`

// evilCommands has command lines for every verb. <trace> is the hostile trace, under a hostile name; <cut> is the same
// without its end, <folder> holds both.
var evilCommands = map[string][][]string{
	"report": {{"report", "<trace>"}, {"report", "<cut>", "--strict"}, {"report", "<folder>"},
		{"report", "--json", "<folder>"}, {"report", "--full-stacks", "--by", "site", "<trace>"},
		{"report", "--by", "tag,name,module,phase,api,library,device,thread,site,function,file,line,category",
			"<trace>"}, {"report", "--by", "category", "--rules", "<rules>", "<trace>"},
		{"report", "--at", "oom", "<trace>"}, {"report", "--at", "mark:\x1b[2J", "<trace>"},
		{"report", "--from", "mark:\x1b[2J", "<trace>"}, {"report", "--from", "oom", "--to", "teardown", "<trace>"},
		{"report", "--to", "mark:\x1b[2J", "<trace>"}, {"report", "--view", "timeline", "--by", "tag", "<trace>"},
		{"report", "--view", "timeline", "--csv", "-", "<trace>"}, {"report", "--view", "modules", "<trace>"},
		{"report", "--view", "parameters", "--csv", "-", "<trace>"},
		{"report", "--view", "iterations", "<trace>"}, {"report", "--color", "always", "<trace>"},
		{"-v", "-v", "report", "<trace>"}, {"report", "--tag", "\x1b[2J", "<trace>"},
		{"report", "--focus", "pwned", "<trace>"}, {"report", "gone-\x1b[2J\u202e.bin"},
		{"report", "--rules", "gone-\x1b[2J\n.toml", "<trace>"}, {"report", "--by", "\x1b[2J", "<trace>"},
		{"report", "--\x1b[2J", "<trace>"}, {"report", "--device", "\x1b[2J", "<trace>"},
		{"report", "--ascii", "--width", "60", "<trace>"}, {"report", "<pipe>"}, {"report", "<text>"}},
	"diff": {{"diff", "<trace>", "<cut>"}, {"diff", "--json", "<trace>", "<cut>"},
		{"diff", "--by", "tag,site,module,thread,category", "<trace>", "<cut>"},
		{"diff", "--color", "always", "<trace>", "<cut>"}},
	"check": {{"check", "--max", "peak=1", "<trace>"}, {"check", "--allow-incomplete", "--max", "peak=1", "--max",
		"site:*=1", "--assert", "no-finding=info", "--assert", "only-library=libnccl", "<trace>"},
		{"check", "--allow-incomplete", "--max", "tag:*=1", "--json", "<trace>"},
		{"check", "--allow-incomplete", "--max", "tag:*=1", "--color", "always", "<folder>"},
		{"check", "--allow-incomplete", "--max", "name:*=1", "--markdown", "-f", "--junit", "<out>", "--sarif",
			"<out>.sarif", "<trace>"}, {"check", "--allow-incomplete", "--max", "tag:x\x1b[2J=1GiB", "<trace>"},
		{"check", "--allow-incomplete", "--baseline", "<cut>", "--compare", "tag:*", "--markdown", "<trace>"},
		{"check", "--allow-incomplete", "--baseline", "<out>.json", "--update", "<trace>"},
		{"check", "--allow-incomplete", "--baseline", "<folder>", "--any-rank", "<trace>"},
		{"check", "--allow-incomplete", "--noise", "--max", "peak=1", "<trace>", "<cut>"},
		{"check", "--max", "\x1b[2J=1", "<trace>"}, {"check", "--assert", "\x1b[2J", "<trace>"},
		{"check", "--assert", "released-after=mark:\x1b[2J>=5%", "--allow-incomplete", "<trace>"},
		{"check", "--budget", "<rules>", "<trace>"}, {"check", "--budget", "<rules>", "--run", "\x1b[2J", "<trace>"},
		{"check", "--baseline", "<text>", "<trace>"}, {"check", "--baseline", "gone-\x1b[2J", "<trace>"},
		{"check", "--max", "peak=1", "<pipe>"}, {"check", "--max", "peak=1", "<text>"}},
	"info": {{"info", "<trace>"}, {"info", "<cut>"}, {"info", "--json", "<trace>"}, {"info", "<folder>"}},
	"dump": {{"dump", "<trace>"}, {"dump", "--kind", "oom", "<trace>"},
		{"dump", "--encode", "<text>", "-o", "<out>"}, {"dump", "--kind", "\x1b[2J", "<trace>"},
		{"dump", "--encode", "<pipe>", "-o", "<out>"}},
	"export": {{"export", "flamegraph", "-o", "-", "<trace>"}, {"export", "collapsed", "-o", "-", "<trace>"},
		{"export", "speedscope", "-o", "-", "<trace>"}, {"export", "pprof", "-f", "-o", "<out>", "<trace>"},
		{"export", "csv", "-f", "-o", "<out>.d", "<trace>"}, {"export", "csv", "-o", "-", "<trace>"},
		{"export", "parquet", "--events", "-f", "-o", "<out>.p", "<trace>", "<cut>"},
		{"export", "parquet", "--run", "\x1b[2J", "-o", "<out>.p", "<trace>"},
		{"export", "dhat", "-o", "-", "<trace>"}, {"export", "perfetto", "-f", "-o", "<out>", "<trace>"},
		{"export", "blocks", "-o", "-", "<trace>"}, {"export", "blocks", "--value", "live", "<trace>"},
		{"export", "memory_viz", "-f", "-o", "<out>", "<trace>"}, {"export", "memory_viz", "--at", "mark:\x1b[2J", "-f",
			"-o", "<out>", "<trace>"}, {"export", "collapsed", "<cut>"}, {"export", "collapsed", "--tag", "\x1b[2J",
			"-f", "<trace>"}, {"export", "\x1b[2J", "<trace>"}},
	"plot": {{"plot", "-f", "-o", "<out>.svg", "<trace>"}, {"plot", "-f", "-o", "<out>.png", "--data", "-",
		"<trace>", "<cut>"}, {"plot", "-o", "x.gif\x1b[2J", "<trace>"}, {"plot", "--kind", "\x1b[2J", "-o", "x.png",
		"<trace>"}, {"plot", "-f", "--kind", "bars", "-o", "<out>.png", "<trace>"},
		{"plot", "-f", "--kind", "flamegraph", "-o", "<out>.svg", "--data", "-", "<trace>"},
		{"plot", "-f", "--kind", "sizes", "-o", "<out>.svg", "<trace>"}, {"plot", "-f", "--kind", "segments", "--at",
			"\x1b[2J", "-o", "<out>.svg", "<trace>"}, {"plot", "-f", "--kind", "segments", "-o", "<out>.svg", "--data",
			"-", "<trace>"}},
	"html": {{"html", "-o", "-", "<trace>"}, {"html", "-f", "-o", "<out>", "<trace>"}, {"html", "-f", "<cut>"},
		{"html", "<pipe>"}, {"html", "<text>"}, {"html", "--tag", "\x1b[2J", "<trace>"},
		{"html", "-o", "-", "<trace>", "<cut>"}, {"html", "-f", "<cut>", "<trace>"},
		{"html", "-o", "-", "<folder>"}},
	"serve": {{"serve", "gone-\x1b[2J"}, {"serve", "<text>"}, {"serve", "<pipe>"},
		{"serve", "--tag", "\x1b[2J", "--focus", "(\x1b[2J", "<trace>"}, {"serve", "--port", "\x1b[2J", "<trace>"},
		{"serve", "--from", "mark:\x1b[2J", "--to", "\x1b[2J", "<trace>"}},
	"rules": {{"rules"}, {"rules", "torch"}, {"rules", "\x1b[2J"}},
	"embed": {{"embed", "<trace>"}, {"-v", "embed", "<trace>"}, {"embed", "<cut>"}, {"embed", "<folder>"}},
	"strip": {{"strip", "-f", "-o", "<out>", "<trace>"}, {"strip", "-f", "-o", "<out>", "<cut>"},
		{"strip", "--keep", "\x1b[2J", "-o", "<out>", "<trace>"}, {"strip", "-o", "<trace>", "<cut>"}},
	"profile": {{"profile", "-f", "-o", "<out>", "<trace>"}, {"profile", "-f", "-o", "<out>", "<cut>"},
		{"profile", "-o", "<trace>", "<cut>"}, {"profile", "-o", "<out>", "<text>"},
		{"profile", "\x1b[2J", "-o", "<out>"}},
	"compact": {{"compact", "-f", "-o", "<out>", "<trace>"}, {"compact", "-f", "-o", "<out>", "<cut>"},
		{"compact", "--max", "\x1b[2J", "-o", "<out>", "<trace>"}, {"compact", "-o", "<out>", "<text>"},
		{"compact", "-o", "<trace>", "<cut>"}},
	"import": {{"import", "-f", "-o", "<out>", "<trace>"}, {"import", "-f", "-o", "<out>", "<text>"},
		{"import", "gone-\x1b[2J"}, {"import", "--format", "\x1b[2J", "-o", "<out>", "<text>"},
		{"import", "--format", "mxnet-csv", "-f", "-o", "<out>", "<text>"}, {"import", "--format", "nvidia-smi", "-f",
			"-o", "<out>", "<trace>"}, {"import", "--format", "mxnet-log", "-f", "-o", "<out>", "<text>"}},
	"anonymize": {{"anonymize", "-f", "-o", "<out>", "<cut>"}, {"anonymize", "--key", "\x1b[2J\n", "-o", "<out>",
		"<trace>"}},
	"top": {{"top", "--once", "<folder>"}, {"top", "--json", "<folder>"}, {"top", "gone-\x1b[2J"},
		{"top", "--by", "\x1b[2J"}},
	"attach": {{"attach", "gone-\x1b[2J"}, {"attach", "--door", "\x1b[2J", "1"},
		{"attach", "--library", "\x1b[2J", "2147483647"}, {"attach", "-o", "%\x1b[2J", "2147483647"},
		{"attach", "-o", "x\n\x1b[2J", "2147483647"}, {"attach"}},
	"ctl": {{"ctl", "2147483647", "status"}, {"ctl", "gone-\x1b[2J", "stop"}, {"ctl", "2147483647", "\x1b[2J"},
		{"ctl", "2147483647", "mark", "\x1b[2J"}, {"ctl", "2147483647", "stop", "\x1b[2J"},
		{"ctl", "2147483647", "snapshot", "-o", "\x1b[2J"}, {"ctl", "2147483647", "referrers", "-o", "\x1b[2J"},
		{"ctl", "1", "referrers", "--timeout", "\x1b[2J"}},
	"run": {{"run", "--report", "text", "--", "sh", "-c", evilRun, "sh", "<trace>", "<copy>"},
		{"run", "--report", "json", "--", "sh", "-c", evilRun, "sh", "<trace>", "<copy>"},
		{"run", "--", "gone-\x1b[2J"}},
	"demo":       {{"demo", "--python", "gone-\x1b[2J"}, {"demo", "-o", "%\x1b[2J"}, {"demo", "\x1b[2J"}},
	"version":    {{"version"}, {"version", "\x1b[2J"}},
	"completion": {{"completion", "\x1b[2J"}}, // the scripts themselves hold nothing of a trace
	"man":        {{"man"}},
}

var ownColours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// `memtrace info` and the warnings of `memtrace export` printed a trace's texts unescaped: a title for the terminal, a
// cleared screen, a line such as "damage none". Whatever a trace, a rule or a file is called, no verb prints a control
// character but line ends, and no line of its own making.
func TestEveryVerbIsHarmless(t *testing.T) {
	words := strings.NewReplacer(evilFiles(t)...)
	t.Setenv("MEMTRACE_LIBRARY", emptyLibrary(t))
	for _, verb := range rootCommand(&app{}).Commands() {
		if name := verb.Name(); evilCommands[name] == nil && name != "no-help-verb" {
			t.Errorf("no command line for the verb %s", name)
		}
	}
	for _, lines := range evilCommands {
		for _, line := range lines {
			args := make([]string, len(line))
			for i, word := range line {
				args[i] = words.Replace(word)
			}
			out, errs := execute(t, args)
			if slices.Contains(line, "always") {
				out = ownColours.ReplaceAllString(out, "")
			}
			wantHarmless(t, fmt.Sprintf("%q: stdout", line), out)
			wantHarmless(t, fmt.Sprintf("%q: stderr", line), errs)
			if out+errs == "" && !slices.Contains(line, "export") {
				t.Errorf("%q says nothing", line)
			}
		}
	}
}

func wantHarmless(t *testing.T, what, text string) {
	t.Helper()
	at := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
	if at < 0 && !utf8.ValidString(text) {
		at = strings.IndexRune(text, utf8.RuneError)
	}
	if at >= 0 {
		t.Errorf("%s: ...%q", what, text[max(0, at-60):min(len(text), at+20)])
	}
	if strings.Contains(text, "\nforged: line") {
		t.Errorf("%s: a line of the trace's own", what)
	}
}

// execute runs a command line and returns what it wrote.
func execute(t *testing.T, args []string) (stdout, stderr string) {
	t.Helper()
	var files [2]*os.File
	for i := range files {
		file, err := os.Create(filepath.Join(t.TempDir(), "stream"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		files[i] = file
	}
	newApp(strings.NewReader(""), files[0], files[1]).execute(args)
	var texts [2]string
	for i, file := range files {
		text, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	return texts[0], texts[1]
}

// evilFiles creates the files that command lines name, and returns their placeholders.
func evilFiles(t *testing.T) []string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	name := "\x1b]0;pwned\x07\x1b[2J\u202e\u009b\nforged: line\xff"
	text := strings.ReplaceAll(evilTrace, "EVIL", evil)
	for key, content := range map[string][]byte{"t" + name + ".bin": encoded(t, text),
		"cut.bin": cutEnd(encoded(t, text)), name +
			"rules.toml": []byte(strings.ReplaceAll(evilRules, "EVIL", evilTOML))} {
		if err := os.WriteFile(filepath.Join(folder, key), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	broken := filepath.Join(t.TempDir(), name+".txt")
	if err := os.WriteFile(broken, []byte("trace version=1\n"+name+"=\x1b[2J\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(t.TempDir(), name+"pipe.bin")
	mkfifo(t, pipe)
	mkfifo(t, filepath.Join(folder, "pipe"+name+".bin"))
	return []string{"<trace>", filepath.Join(folder, "t"+name+".bin"), "<cut>", filepath.Join(folder, "cut.bin"),
		"<rules>", filepath.Join(folder, name+"rules.toml"), "<folder>", folder,
		"<text>", broken, "<pipe>", pipe, "<out>", filepath.Join(t.TempDir(), name+"out"), "<copy>",
		filepath.Join(t.TempDir(), name+"copy.bin")}
}

// evilTOML is evil as TOML writes it, which has no bytes that are not text.
const evilTOML = `\u001b]0;pwned\u0007\u001b[2J\u202e\u009b31m\u007f`

func encoded(t testing.TB, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := textform.Encode(&out, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// cutEnd takes the end section away, and a little more.
func cutEnd(file []byte) []byte { return file[:len(file)-len(file)/4] }
